"""Peak memory of a program in a separate process."""

import concurrent.futures
import ctypes
import multiprocessing
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Every large buffer has its own mapping, returned when it is freed. So resident memory
# is memory in use, however fragmented the heap was before.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "65536", "TF_ONEDNN_USE_SYSTEM_ALLOCATOR": "1"}

PROCESS = Path("/proc/self")


def in_own_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Runs a function of a module in a new process, where `peak` is exact."""
    os.environ.update(ALLOCATOR)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def peak(run: Callable[[], Any]) -> int:
    """The peak memory of a run in bytes, beyond the memory in use before.

    Raises:
        OSError: this is not Linux.
    """
    run()  # compiles
    before = forget_peak()
    run()
    return resident("VmHWM") - before


def forget_peak() -> int:
    """Resets the peak to the memory in use, and returns that, in bytes."""
    ctypes.CDLL(None).malloc_trim(0)
    (PROCESS / "clear_refs").write_text("5")
    return resident("VmRSS")


def resident(field: str) -> int:
    """Bytes of memory, from a field of the kernel's status of this process."""
    status = (PROCESS / "status").read_text()
    return 1024 * int(re.search(rf"{field}:\s+(\d+) kB", status)[1])
