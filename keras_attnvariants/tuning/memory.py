"""The largest resident memory of this process."""

import contextlib
import resource
from pathlib import Path

from keras_attnvariants.utils.lines import split_lines

STATUS = Path("/proc/self/status")


def forget_peak() -> None:
    """Start to measure anew, where the operating system allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    """MiB since `forget_peak`; without support for it, since the process started."""
    with contextlib.suppress(OSError):
        for line in split_lines(STATUS.read_text()):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
