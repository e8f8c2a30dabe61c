"""Layers whose products of 8-bit integers are as fast as the processor allows.

On a CPU, the usual product of TensorFlow takes several times as long for 8-bit integers
as for floats; the kernel of oneDNN takes a fraction of it. Where that is not exact (see
`keras_attnvariants.backend.onednn`), the integers are multiplied as floats, whose sums
are exact up to 2^24, and beyond that within float32. Everything else about quantized
layers, and every other device, is left to Keras.
"""

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants.backend.compilation import in_xla
from keras_attnvariants.backend.compilation import name
from keras_attnvariants.backend.compilation import on_cpu
from keras_attnvariants.backend.onednn import is_onednn_exact
from keras_attnvariants.backend.onednn import onednn_product
from keras_attnvariants.backend.shapes import as_matrix
from keras_attnvariants.backend.shapes import with_lead_of
from keras_attnvariants.backend.slices import take
from keras_attnvariants.utils.typing import Tensor

# 8-bit integers from minus this to this are used.
INT8_MAX = 127.0


@contextlib.contextmanager
def cheap_collections() -> Iterator[None]:
    """Context in which garbage is searched for among new objects alone."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Dense(keras.layers.Dense):
    """`keras.layers.Dense`, fast on a CPU once it is quantized to int8.

    Inputs `[..., I]` become a matrix `[N, I]` first, so that TensorFlow can add biases
    and apply activations within the product.
    """

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        outputs = self.multiply(as_matrix(inputs), training)
        return with_lead_of(inputs, outputs)

    def multiply(self, rows: Tensor, training: bool | None = None) -> Tensor:
        """As in Keras, for a matrix `[N, I]`."""
        return super().call(rows, training)

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """As in Keras, whose check of the type would refuse a subclass."""
        with cheap_collections():  # Keras collects after each kernel.
            super().quantize(mode, type_check=False, config=config)

    def quantized_call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        if is_fast_for(self):
            outputs = multiply(inputs, self.kernel, self.kernel_scale)
        else:
            return super().quantized_call(inputs, training)
        if self.bias is not None:
            outputs = ops.add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)


class ReversibleEmbedding(keras.layers.ReversibleEmbedding):
    """`keras.layers.ReversibleEmbedding`, fast on a CPU once quantized to int8.

    In reverse, inputs `[..., D]` become a matrix first.
    """

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        if not reverse:
            return super().call(inputs)
        logits = super().call(as_matrix(inputs), reverse=True)
        return with_lead_of(inputs, logits)

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """As in Keras, whose check of the type would refuse a subclass."""
        with cheap_collections():  # Keras collects after each kernel.
            super().quantize(mode, type_check=False, config=config)

    def quantized_call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        if not is_fast_for(self):
            return super().quantized_call(inputs, reverse)
        if reverse:
            return multiply(inputs, self.embeddings, self.embeddings_scale, True)
        rows, scale = (
            take(ops.convert_to_tensor(weight), inputs)
            for weight in (self.embeddings, self.embeddings_scale)
        )
        return ops.cast(rows, self.compute_dtype) / ops.expand_dims(scale, axis=-1)


def is_plain_int8(layer: keras.layers.Layer) -> bool:
    """Whether a layer is one of this file, quantized in the usual way."""
    return (
        isinstance(layer, (Dense, ReversibleEmbedding))
        and layer.quantization_mode == "int8"
        and layer.inputs_quantizer is not None
        and not layer.lora_enabled
        and getattr(layer, "tie_weights", True)
        and getattr(layer, "logit_soft_cap", None) is None
    )


def is_fast_for(layer: keras.layers.Layer) -> bool:
    """Whether a quantized layer may be computed by `multiply`, here and now."""
    return is_plain_int8(layer) and is_fast_here()


def is_fast_here() -> bool:
    """Whether `multiply` works in the current computation: in a graph, on a CPU."""
    if name() != "tensorflow":
        return False
    return in_graph() and not in_xla() and on_cpu()


def in_graph() -> bool:
    """Whether TensorFlow is tracing a function; oneDNN's kernel needs a graph."""
    import tensorflow as tf

    return not tf.executing_eagerly()


def multiply(
    inputs: Tensor, kernel: Tensor, kernel_scale: Tensor, transposed: bool = False
) -> Tensor:
    """Product of floats with a matrix of 8-bit integers, which has a gradient.

    Each row of the inputs is rounded to 8-bit integers with a scale of its own.

    Args:
        inputs: `[..., I]`, in float32 or bfloat16, the dtype of the result.
        kernel: int8 `[I, O]`, or `[O, I]` if `transposed`.
        kernel_scale: `[O]`, integers per unit of the floats that they stand for.
        transposed: whether the kernel is transposed.

    Returns:
        `[..., O]`.
    """
    import tensorflow as tf

    kernel = tf.convert_to_tensor(kernel)
    ends = column_ends(kernel_scale)
    rows = as_matrix(inputs)

    @tf.custom_gradient
    def product(rows: Tensor) -> tuple[Tensor, Any]:
        def gradient(upstream: Tensor) -> Tensor:
            columns = ends / INT8_MAX
            matrix = tf.cast(kernel, "float32")
            matrix *= columns[:, None] if transposed else columns
            matrix = matrix if transposed else tf.transpose(matrix)
            return tf.matmul(upstream, tf.cast(matrix, rows.dtype))

        return rounded_product(rows, kernel, ends, transposed), gradient

    return with_lead_of(inputs, product(rows))


def column_ends(kernel_scale: Any) -> Any:
    """The float that `INT8_MAX` stands for in each column, float32 `[O]`.

    Args:
        kernel_scale: `[O]`, a tensor or an array, as the result.
    """
    if isinstance(kernel_scale, np.ndarray):
        return np.float32(INT8_MAX) / kernel_scale.astype("float32")
    return INT8_MAX / ops.cast(ops.convert_to_tensor(kernel_scale), "float32")


def rounded_product(
    rows: Tensor,
    kernel: Any,
    ends: Any,
    transposed: bool = False,
    fixed: bool = False,
) -> Tensor:
    """Product of floats `[N, I]`, rounded to 8-bit integers row by row, with a kernel.

    Args:
        rows: `[N, I]`, in float32 or bfloat16, the dtype of the result.
        kernel: int8 `[I, O]`, or `[O, I]` if `transposed`.
        ends: `column_ends`.
        transposed: whether the kernel is transposed.
        fixed: whether the kernel will never change, in a graph for processors whose
            integers are exact. oneDNN arranges it at the first product, which takes
            longer than the product with a few rows, and keeps that.

    Returns:
        `[N, O]`.
    """
    import tensorflow as tf

    floats = tf.cast(rows, "float32")
    peak = tf.reduce_max(tf.abs(floats), axis=-1, keepdims=True)
    peak = tf.maximum(peak, keras.config.epsilon())
    integers = tf.round(floats * (INT8_MAX / peak))
    # As if INT8_MAX stood for 1 in every row.
    if fixed or is_onednn_exact():
        narrow = tf.cast(integers, "int8")
        outputs = onednn_product(narrow, kernel, tf.ones(()), ends, transposed, fixed)
    else:
        matrix = tf.cast(kernel, "float32")
        sums = tf.matmul(integers, matrix, transpose_b=transposed)
        outputs = sums * (ends / INT8_MAX**2)
    return tf.cast(outputs * peak, rows.dtype)
