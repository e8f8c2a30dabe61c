"""Imports TensorFlow and Keras without their greeting and without unused modules.

This is the one place with tricks for a fast start. Together they save two fifths of the
processor time that the imports take: half a second or more each for JAX, for Matplotlib
with scikit-learn, and for garbage collection among objects that stay.
"""

import contextlib
import gc
import importlib.util
import json
import os
import pkgutil
import sys
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from importlib import import_module
from importlib import metadata
from pathlib import Path
from typing import Any

from keras_attnvariants.utils.machine import MAX_PARTS
from keras_attnvariants.utils.machine import cores
from keras_attnvariants.utils.machine import processor_features

# Read by TensorFlow when it is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
if not os.path.isabs(os.path.expanduser("~")):
    # For a user without a home, Keras would make a folder called ~.
    os.environ.setdefault("KERAS_HOME", os.devnull)

# Imported by TensorFlow and Keras where installed, for functions that this package does
# not use.
UNUSED = ("matplotlib", "sklearn")


def import_tensorflow() -> None:
    """Imports TensorFlow and Keras without a greeting, which no log level silences.

    On processors with AVX2 and without AVX512, oneDNN multiplies faster than TensorFlow
    by itself, but is off by default.
    """
    if "tensorflow" in sys.modules:
        return
    if {"AVX2", "AVX512"}.intersection(processor_features()) == {"AVX2"}:
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    sys.stderr.flush()
    original, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        with lean_imports():
            import tensorflow as tf

            if keras_backend() == "jax":
                # JAX computes there; TensorFlow would take all of its memory.
                tf.config.set_visible_devices([], "GPU")
            tf.config.list_logical_devices()
    finally:
        os.dup2(original, 2)
        os.close(original)
        os.close(nowhere)


def use_one_thread_per_operator() -> None:
    """Makes TensorFlow run several operators at a time, each on one thread.

    It reads the variable when it starts, so this comes before `import_tensorflow`. A
    value that the user has set stays.
    """
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")


def train_on_parts() -> None:
    """Prepares the training of a model on parts of each batch at the same time.

    There is one part for each core, up to `MAX_PARTS`; with more cores, each operator
    uses all of them. See `use_one_thread_per_operator`.
    """
    if cores() <= MAX_PARTS:
        use_one_thread_per_operator()


def import_tensorflow_text() -> Any:
    """TensorFlow Text, which is only needed for texts in TensorFlow graphs.

    Raises:
        ValueError: it is not installed; says how to install it.
    """
    if importlib.util.find_spec("tensorflow_text") is None:
        release = ".".join(metadata.version("tensorflow").split(".")[:2])
        raise ValueError(
            "Texts in graphs and exported models need tensorflow-text, not "
            f"installed here: pip install 'tensorflow-text=={release}.*' (on Linux or "
            "macOS; there is none for Windows)"
        )
    return import_module("tensorflow_text")


@contextlib.contextmanager
def lean_imports() -> Iterator[None]:
    """Context in which TensorFlow and Keras are imported without unused modules.

    Meanwhile, unused modules seem not to be installed. Imported objects are excluded
    from garbage collection, even when the process ends.
    """
    unused = UNUSED if keras_backend() == "jax" else (*UNUSED, "jax")
    absent: dict[str, Any] = {name: None for name in unused if name not in sys.modules}
    sys.modules.update(absent)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
        for name in absent:
            del sys.modules[name]


def keras_backend() -> str:
    """The backend that Keras will use, found without importing it."""
    if chosen := os.environ.get("KERAS_BACKEND"):
        return chosen
    folder = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
    with contextlib.suppress(OSError, ValueError, AttributeError):
        settings = json.loads((Path(folder) / "keras.json").read_text("utf-8"))
        return str(settings.get("backend", "tensorflow"))
    return "tensorflow"


def import_named(option: str, place: str) -> Any:
    """A module of the user, found as Python finds modules or in the working directory.

    Args:
        option: option that names it, or the key of a file.
        place: the module, or `module:name` for an object in it.

    Raises:
        ValueError: there is no such module or name, or the module fails.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return pkgutil.resolve_name(place)
    except Exception as error:
        raise ValueError(
            f"`{option}` cannot be imported: {type(error).__name__}: {error}. "
            f"Received: {place}"
        ) from error


def late_names(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that imports some of its modules on first use.

    Args:
        package: name of the package.
        home: the module of the package that defines each name.
    """

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{home[name]}"), name)

    return find
