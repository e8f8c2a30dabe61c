"""This machine: its processor, packages and processes, and timings on it."""

import contextlib
import importlib.util
import math
import os
import platform
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from timeit import timeit

from keras_attnvariants.utils.lines import split_lines

# The most parts of a batch that are trained on at the same time: each is traced.
MAX_PARTS = 8

# Processor flags on Linux, and the makers' names for them.
_FEATURES = {
    "avx2": "AVX2",
    "avx_vnni": "AVX-VNNI",
    "avx512f": "AVX512",
    "avx512_vnni": "AVX512-VNNI",
    "avx512_bf16": "AVX512-BF16",
    "amx_tile": "AMX",
}


def cores() -> int:
    """Number of the processor's cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """The name of the processor, if the operating system reports it."""
    return from_proc("cpuinfo", "model name") or platform.processor()


def processor_features() -> list[str]:
    """The processor's instruction sets for matrix products, such as `"AVX2"`.

    Empty if the operating system does not report them.
    """
    flags = set(from_proc("cpuinfo", "flags").split())
    return [name for flag, name in _FEATURES.items() if flag in flags]


def kind_of_processor() -> str:
    """The processor and its instruction sets: speeds depend on both."""
    return f"{processor()} ({', '.join(processor_features())})"


def from_proc(file: str, key: str) -> str:
    """The first value of a key in a file of Linux' `/proc`, or an empty string."""
    with contextlib.suppress(OSError):
        for line in split_lines(Path("/proc", file).read_text()):
            if line.startswith(key):
                return line.partition(":")[2].strip()
    return ""


def hardware() -> dict[str, str]:
    """The machine, by property, and the devices that Keras computes on."""
    import keras

    return {
        "machine": platform.machine(),
        "processor": processor(),
        "features": ", ".join(processor_features()),
        "cores": str(cores()),
        "system": platform.system(),
        "devices": ", ".join(keras.distribution.list_devices()),
    }


def installed(name: str) -> str | None:
    """The version of an installed package, or `None`."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed, by name."""
    return {name: version for name in names if (version := installed(name)) is not None}


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra."""
    return f"pip install 'keras_attnvariants[{extra}]'"


def check_extra(what: str, extra: str, modules: Iterable[str]) -> None:
    """Raises unless modules of an extra can be imported.

    Args:
        what: the feature that needs them, with which the message begins.
        extra: the extra that installs them.
        modules: names of top-level modules.

    Raises:
        ValueError: says which are missing, and how to install them.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(
            f"{what} needs {' and '.join(missing)}, not installed here: "
            f"{install_command(extra)}"
        )


@contextlib.contextmanager
def shared_machine(processes: int, threads: int | None = None) -> Iterator[None]:
    """Context for starting processes that share the cores and the memory of GPUs.

    It sets environment variables, except those that are already set. Up to `MAX_PARTS`
    threads each take a part of a batch; more divide each operator among them.

    Args:
        processes: number of processes that run at a time.
        threads: threads of each; `None` shares the cores equally.
    """
    threads = threads or max(1, cores() // processes)
    variables = {
        "TF_NUM_INTRAOP_THREADS": "1" if threads <= MAX_PARTS else str(threads),
        "TF_NUM_INTEROP_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }
    added = {k: v for k, v in variables.items() if k not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def shortest_seconds(
    functions: Mapping[str, Callable[[], object]],
    clock: Callable[[], float],
    rounds: int = 30,
    limit: float = math.inf,
) -> dict[str, float]:
    """The shortest time of each function, in seconds, after a first call of each.

    They take turns, many times, so that other work on the machine does not slow down
    only one of them.

    Args:
        functions: functions by name. Each has to wait for what it computes.
        clock: returns seconds.
        rounds: how often each is timed.
        limit: seconds after which no further round begins; each is timed at least once.
    """
    for function in functions.values():
        function()
    rows: list[dict[str, float]] = []
    start = clock()
    while len(rows) < rounds and (not rows or clock() - start < limit):
        rows.append(
            {name: timeit(f, timer=clock, number=1) for name, f in functions.items()}
        )
    return {name: min(row[name] for row in rows) for name in functions}
