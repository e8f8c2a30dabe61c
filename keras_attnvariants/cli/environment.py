"""What is installed, what the machine has, and whether it goes together."""

import importlib.util
import os
import platform
import re
from collections.abc import Iterator
from importlib import metadata

import keras
import tensorflow as tf

import keras_attnvariants
from keras_attnvariants.cli.health import DAMAGED
from keras_attnvariants.cli.health import NOTE
from keras_attnvariants.cli.health import OK
from keras_attnvariants.cli.health import Diagnosis
from keras_attnvariants.cli.health import Finding
from keras_attnvariants.training.precision import faster_precision
from keras_attnvariants.utils.caches import default_cache

# Packages that are needed, and extras: module and what it is for.
NEEDED = (
    "keras",
    "tensorflow",
    "tensorflow-text",
    "sentencepiece",
    "sacrebleu",
    "numpy",
)
EXTRAS = {
    "matplotlib": ("matplotlib", "kav plot and kav attention: pip install '.[plot]'"),
    "tensorboard": (
        "tensorboard",
        "the logs that it shows: pip install '.[tensorboard]'",
    ),
    "jax": ("jax", "KERAS_BACKEND=jax: pip install jax"),
}


def examine_environment(measure_precision: bool) -> Diagnosis:
    """What is installed and what the machine has.

    Args:
        measure_precision: whether to measure which precision is faster.
    """
    findings = [
        Finding(OK, "keras_attnvariants", keras_attnvariants.__version__),
        Finding(OK, "python", f"{platform.python_version()} on {platform.platform()}"),
        *_packages(),
        *_extras(),
        *_machine(),
        Finding(OK, "cache", f"{default_cache()} (environment: KAV_CACHE)"),
    ]
    if measure_precision:
        text = f"{faster_precision()} is faster here"
        findings.append(Finding(OK, "precision", text))
    return Diagnosis("what is installed, and the machine", findings, [])


def installed(name: str) -> str | None:
    """The version of an installed package, or `None`."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _packages() -> Iterator[Finding]:
    for name in NEEDED:
        version = installed(name)
        if version is None:
            yield Finding(DAMAGED, name, "not installed", f"pip install {name}")
        elif problem := _misfit(name, version):
            yield Finding(DAMAGED, name, f"{version}: {problem}", "Run pip install .")
        else:
            yield Finding(OK, name, version)


def _misfit(name: str, version: str) -> str:
    """Why a version of a package does not go with the others, or an empty string."""
    if name == "tensorflow-text":
        ours, its = (_numbers(v)[:2] for v in (version, tf.__version__))
        return (
            "" if ours == its else f"built for another TensorFlow than {tf.__version__}"
        )
    if name == "sentencepiece" and _numbers(version) < [0, 2, 3]:
        return "crashes on crafted models; 0.2.3 does not"
    return ""


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def _extras() -> Iterator[Finding]:
    for name, (module, purpose) in EXTRAS.items():
        if importlib.util.find_spec(module) is None:
            yield Finding(NOTE, name, f"not installed; for {purpose}")
        else:
            yield Finding(OK, name, installed(name) or "installed")


def _machine() -> Iterator[Finding]:
    yield Finding(OK, "backend", f"{keras.backend.backend()} (KERAS_BACKEND)")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    threads = tf.config.threading.get_intra_op_parallelism_threads() or "as many"
    text = f"{cores or os.cpu_count()} cores; TensorFlow's threads: {threads}"
    yield Finding(OK, "threads", text)
    kinds = [device.device_type for device in tf.config.list_physical_devices()]
    counted = (f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    yield Finding(OK, "devices", ", ".join(counted))
