"""What is installed, what the machine has, and whether it goes together."""

import platform
import re
from collections.abc import Iterator
from importlib import metadata

import keras
import tensorflow as tf
from packaging.requirements import Requirement

import keras_attnvariants
from keras_attnvariants import backend
from keras_attnvariants.cli.health import DAMAGED
from keras_attnvariants.cli.health import NOTE
from keras_attnvariants.cli.health import OK
from keras_attnvariants.cli.health import Diagnosis
from keras_attnvariants.cli.health import Finding
from keras_attnvariants.training.precision import faster_precision
from keras_attnvariants.utils.caches import default_cache
from keras_attnvariants.utils.machine import cores
from keras_attnvariants.utils.machine import processor
from keras_attnvariants.utils.machine import processor_features
from keras_attnvariants.utils.packages import install_command
from keras_attnvariants.utils.packages import installed

# Packages that are needed.
NEEDED = (
    "keras",
    "tensorflow",
    "tensorflow-text",
    "sentencepiece",
    "sacrebleu",
    "numpy",
)
# Extras of this package, and what they are for.
EXTRAS = {
    "plot": "kav plot, kav attention and kav analyse",
    "tensorboard": "the logs that TensorBoard shows",
    "tune": "kav tune",
    "compare": "kav compare",
    "demo": "kav demo",
    "jax": "KERAS_BACKEND=jax, and several devices",
    "beam": "corpora and translation beyond one machine",
    "mlserver": "serving with MLServer",
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
    for extra, purpose in EXTRAS.items():
        versions = {name: installed(name) for name in packages_of(extra)}
        missing = [name for name, version in versions.items() if version is None]
        if missing:
            text = f"not installed: {', '.join(missing)}; for {purpose}"
            yield Finding(NOTE, extra, text, install_command(extra))
        else:
            found = ", ".join(f"{name} {versions[name]}" for name in versions)
            yield Finding(OK, extra, f"{found}; for {purpose}")


def packages_of(extra: str) -> list[str]:
    """The packages that an extra of this package installs."""
    found = map(Requirement, metadata.requires("keras_attnvariants") or ())
    return [
        requirement.name
        for requirement in found
        if requirement.marker and requirement.marker.evaluate({"extra": extra})
    ]


def _machine() -> Iterator[Finding]:
    yield Finding(OK, "processor", ", ".join([processor(), *processor_features()]))
    yield _integers()
    yield Finding(OK, "backend", f"{keras.backend.backend()} (KERAS_BACKEND)")
    threads = tf.config.threading.get_intra_op_parallelism_threads() or "as many"
    text = f"{cores()} cores; TensorFlow's threads: {threads}"
    yield Finding(OK, "threads", text)
    kinds = [device.device_type for device in tf.config.list_physical_devices()]
    counted = (f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    yield Finding(OK, "devices", ", ".join(counted))


def _integers() -> Finding:
    """What follows from the processor for products of 8-bit integers."""
    if backend.is_onednn_exact():
        text = "multiplied by oneDNN, in Python and in exports with --onednn"
        return Finding(OK, "int8", text)
    text = "multiplied as floats; exports with --onednn refuse to translate"
    return Finding(NOTE, "int8", text)
