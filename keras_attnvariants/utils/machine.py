"""The machine that this process runs on."""

import os
import platform
from pathlib import Path

from keras_attnvariants.utils.lines import split_lines


def cores() -> int:
    """Number of the processor's cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """The name of the processor, where the operating system tells it."""
    try:
        for line in split_lines(Path("/proc/cpuinfo").read_text()):
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def hardware() -> dict[str, str]:
    """The machine, by property, and the devices that Keras computes on."""
    import keras

    return {
        "machine": platform.machine(),
        "processor": processor(),
        "cores": str(cores()),
        "system": f"{platform.system()} {platform.release()}",
        "devices": ", ".join(keras.distribution.list_devices()),
    }
