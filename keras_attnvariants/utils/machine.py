"""The machine that this process runs on."""

import os
import platform
from pathlib import Path

from keras_attnvariants.utils.lines import split_lines

# The flags of Linux, and the names of their makers.
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
    """The name of the processor, where the operating system tells it."""
    return _about_processor("model name") or platform.processor()


def processor_features() -> list[str]:
    """The instructions for products that the processor has, such as `"AVX2"`.

    Empty where the operating system does not tell them.
    """
    flags = set(_about_processor("flags").split())
    return [name for flag, name in _FEATURES.items() if flag in flags]


def _about_processor(key: str) -> str:
    """What Linux says of the first core, or an empty string."""
    try:
        for line in split_lines(Path("/proc/cpuinfo").read_text()):
            if line.startswith(key):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return ""


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
