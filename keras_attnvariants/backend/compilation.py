"""Compiling functions of tensors on any backend, and values that graphs share."""

import functools
import hashlib
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants.backend.private import is_in_xla_context
from keras_attnvariants.utils.machine import from_proc
from keras_attnvariants.utils.machine import shortest_seconds
from keras_attnvariants.utils.typing import Tensor

# The attribute of a tensor that holds values computed from it.
_KEPT = "_keras_attnvariants_kept"


def name() -> str:
    """The name of the Keras backend in use: `"tensorflow"` or `"jax"`.

    Raises:
        ValueError: it is another one.
    """
    found = str(keras.config.backend())
    if found not in ("tensorflow", "jax"):
        raise ValueError(
            f"The Keras backend must be 'tensorflow' or 'jax'. Received: {found!r}"
        )
    return found


def jit(function: Callable[..., Any], xla: bool = True) -> Callable[..., Any]:
    """Compiles a function of tensors; one compilation per set of input shapes.

    Args:
        function: takes and returns (nested) tensors. Other arguments must be bound
            beforehand, for example in a closure.
        xla: on TensorFlow, whether XLA compiles the graph. On JAX, it always does.

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

        # The package writes loops with `ops.while_loop` and does not need AutoGraph.
        # TensorFlow warns if one function is compiled often, unless it is partial.
        function = functools.partial(function)
        return tf.function(
            function, jit_compile=xla, reduce_retracing=not xla, autograph=False
        )
    import jax

    return jax.jit(function)


def jit_for_any_sizes(
    function: Callable[..., Any], weights: list[Tensor], *inputs: Tensor
) -> Callable[..., Any]:
    """Compiles a function once for inputs of all sizes; on TensorFlow, without XLA.

    Args:
        function: takes a list of weights and any number of inputs, all of them tensors.
        weights: examples of the weights, whose shapes do not change.
        *inputs: examples of the inputs, whose number of axes does not change.
    """
    import tensorflow as tf

    fixed = [tf.TensorSpec(weight.shape, weight.dtype) for weight in weights]
    free = (tf.TensorSpec([None] * len(x.shape), x.dtype) for x in inputs)
    return tf.function(function, input_signature=(fixed, *free), autograph=False)


def keep_programs(folder: str | os.PathLike[str]) -> None:
    """Lets JAX keep compiled programs, and load them in later processes.

    JAX keeps programs that took over a second to compile. Processors of different kinds
    have different folders. Anyone who can write to the folder can change the programs
    that are run, so it must belong to the user. Nothing changes on TensorFlow, or if
    JAX already has a folder (`JAX_COMPILATION_CACHE_DIR`).

    Args:
        folder: a folder, which need not exist.
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
    # x86 processors have flags, ARM processors have features.
    flags = from_proc("cpuinfo", "flags") or from_proc("cpuinfo", "Features")
    described = f"{platform.machine()} {platform.processor()} {flags}"
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def in_xla() -> bool:
    """Whether the current computation is traced for XLA; on JAX, always."""
    return name() != "tensorflow" or is_in_xla_context()


def device_kind() -> str:
    """The kind of device that the backend computes on, such as `"cpu"` or `"gpu"`."""
    return str(keras.distribution.list_devices()[0]).partition(":")[0]


def on_cpu() -> bool:
    """Whether the backend computes on a CPU, and not on a GPU or TPU."""
    return device_kind() == "cpu"


def gains_from_xla(model: Any) -> bool:
    """Whether a search is faster when XLA compiles it.

    It is not on a CPU if the model computes in half precision or with 8-bit integers:
    TensorFlow has fast products for these, and XLA does not.

    Args:
        model: a Keras model or any step model. One without a `compute_dtype` counts as
            float32, one without a `quantization` as not quantized.
    """
    if name() != "tensorflow" or not on_cpu():
        return True
    is_quantized = getattr(model, "quantization", None) is not None
    return getattr(model, "compute_dtype", "float32") == "float32" and not is_quantized


def faster_floats() -> str:
    """`"bfloat16"` if its products take less than 0.8 of the time, or `"float32"`.

    Few processors multiply bfloat16 matrices in hardware, see `bfloat16_cost`.
    """
    return "bfloat16" if bfloat16_cost() < 0.8 else "float32"


@functools.cache
def bfloat16_cost() -> float:
    """The time of a matrix product in bfloat16 over that in float32.

    It is measured, in less than half a second, by the first call in a process.
    """
    products = {dtype: product_of(dtype) for dtype in ("bfloat16", "float32")}
    seconds = shortest_seconds(products, clock())
    return seconds["bfloat16"] / seconds["float32"]


def product_of(dtype: str) -> Callable[[], float]:
    """A function that multiplies matrices of a typical size and waits."""
    rows, matrix = ops.ones((256, 512), dtype), ops.ones((512, 2048), dtype)
    # Reading a number waits for the product. NumPy knows no bfloat16.
    return lambda: float(ops.cast(ops.matmul(rows, matrix)[0, 0], "float32"))


def clock() -> Callable[[], float]:
    """The clock with which computations are compared.

    On a CPU it counts the time of this process only, so other work on the machine does
    not make a computation look slow.
    """
    return time.process_time if on_cpu() else time.perf_counter


class Constant(np.ndarray):
    """An array that does not change, see `constant`."""

    _tensor: Tensor | None = None


def constant(array: np.ndarray) -> np.ndarray:
    """Marks an array that the graphs of a search share instead of holding copies.

    In a TensorFlow graph, an array becomes a constant of that graph, which any exporter
    understands. A SavedModel would hold one copy for each search and for each body of a
    loop. Searches are therefore traced from copies of models that hold its
    `shared_tensor` instead (`keras_attnvariants.backend.inference_copy`).

    Call it once, for example in `build`, and keep the returned array. It is not a
    weight, so weight files do not include it.
    """
    return array.view(Constant)


def shared_tensor(value: Any) -> Any:
    """A constant as a tensor that all graphs of TensorFlow refer to.

    Graphs capture a tensor that was made outside of them, and it is stored once.
    Tensors of up to 128 elements are nevertheless copied into graphs. Anything but a
    `constant` is returned as it is, and so is everything on JAX.
    """
    if not isinstance(value, Constant) or name() != "tensorflow":
        return value
    import tensorflow as tf

    if value._tensor is None:
        with tf.init_scope():
            value._tensor = tf.constant(value)
    return value._tensor


def keep_result(x: Tensor, other: Tensor, values: Any) -> None:
    """Keeps values that were computed from two tensors of a TensorFlow graph.

    TensorFlow merges equal operators, but neither equal loops nor equal programs.
    Nothing is kept for eager tensors, nor on other backends, where XLA finds
    computations that occur twice.

    Args:
        x: a tensor, which holds the values as long as it exists.
        other: the other tensor.
        values: nested tensors.
    """
    if name() != "tensorflow":
        return
    import tensorflow as tf

    parts = [x, *keras.tree.flatten(values)]
    # Tensors of an inner graph could not be read outside of it.
    if all(map(tf.is_symbolic_tensor, parts)) and len({id(p.graph) for p in parts}) < 2:
        setattr(x, _KEPT, (other, values))


def kept_result(x: Tensor, other: Tensor) -> Any:
    """The values kept for exactly these two tensors, or `None`."""
    first, values = getattr(x, _KEPT, (None, None))
    return values if first is other else None
