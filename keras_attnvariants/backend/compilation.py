"""Compiling a function of tensors on whichever backend Keras runs."""

import hashlib
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants.backend.private import is_in_xla_context
from keras_attnvariants.utils.lines import split_lines


def name() -> str:
    """The name of the Keras backend in use: `"tensorflow"`, `"jax"`, …"""
    return str(keras.config.backend())


def jit(function: Callable[..., Any], xla: bool = True) -> Callable[..., Any]:
    """Compiles a function of tensors; one compilation per set of input shapes.

    Args:
        function: takes and returns (nested) tensors. Other arguments have to be bound
            beforehand, in a closure for example.
        xla: on TensorFlow, whether XLA compiles the graph. JAX always does.

    Returns:
        A callable with the signature of `function`.

    Raises:
        ValueError: the backend is neither TensorFlow nor JAX.

    Example:

    >>> from keras import ops
    >>> double = jit(lambda x: 2 * x)
    >>> [float(x) for x in double(ops.array([1.0, 2.0]))]
    [2.0, 4.0]
    """
    if name() == "tensorflow":
        import tensorflow as tf

        # The package writes loops with `ops.while_loop`: AutoGraph has nothing to do.
        return tf.function(
            function, jit_compile=xla, reduce_retracing=not xla, autograph=False
        )
    if name() == "jax":
        import jax

        return jax.jit(function)
    raise ValueError(
        f"The Keras backend must be 'tensorflow' or 'jax'. Received: {name()!r}"
    )


def keep_programs(folder: str | os.PathLike[str]) -> None:
    """Lets JAX keep what it compiles, and load it in later processes.

    A program that took over a second to compile is kept. Processors of different kinds
    have different folders. Whoever may write there decides what is run: it must be a
    folder of the user's own. Nothing changes on TensorFlow, or if JAX has a folder
    already (`JAX_COMPILATION_CACHE_DIR`).

    Args:
        folder: it need not exist.
    """
    if name() != "jax":
        return
    import jax

    config: Any = jax.config
    if config.jax_compilation_cache_dir is None:
        path = Path(folder) / processor()
        config.update("jax_compilation_cache_dir", str(path))


def processor() -> str:
    """A short name for processors that run the same programs."""
    about = Path("/proc/cpuinfo")
    lines = split_lines(about.read_text()) if about.is_file() else []
    # What the first of them can do: all are alike.
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    described = f"{platform.machine()} {platform.processor()} {flags}"
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def in_xla() -> bool:
    """Whether the current computation is traced for XLA; on JAX, always."""
    return name() != "tensorflow" or is_in_xla_context()


def on_cpu() -> bool:
    """Whether the backend computes on a CPU, and not on a GPU or TPU."""
    if name() == "tensorflow":
        import tensorflow as tf

        kinds = {device.device_type for device in tf.config.get_visible_devices()}
        return not kinds & {"GPU", "TPU"}
    import jax

    return str(jax.default_backend()) == "cpu"


def gains_from_xla(model: Any) -> bool:
    """Whether a search is faster when XLA compiles it.

    It is not on a CPU, if the model computes in half precision or with 8-bit integers:
    TensorFlow has fast products for these, and XLA has not.

    Args:
        model: a Keras model or any step model. One without a `compute_dtype` counts as
            float32, one without a `quantization` as not quantized.
    """
    if name() != "tensorflow":
        return True
    dtype = getattr(model, "compute_dtype", "float32")
    quantized = getattr(model, "quantization", None) is not None
    is_narrow = dtype != "float32" or quantized
    return not is_narrow or not on_cpu()
