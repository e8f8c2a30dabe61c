"""Layers whose products of 8-bit integers are as fast as the processor allows.

On a CPU, the usual product of TensorFlow takes several times as long for 8-bit integers
as for floats; the kernel of oneDNN takes a fraction of it. Where that is not exact (see
`keras_attnvariants.backend.onednn`), the integers are multiplied as floats, whose sums
are exact up to 2^24, and beyond that within float32. Everything else about quantized
layers, and every other device, is left to Keras.
"""

import contextlib
import contextvars
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend.compilation import in_xla
from keras_attnvariants.backend.compilation import name
from keras_attnvariants.backend.compilation import on_cpu
from keras_attnvariants.backend.onednn import is_onednn_exact
from keras_attnvariants.backend.onednn import onednn_product
from keras_attnvariants.backend.packing import packable
from keras_attnvariants.backend.private import nested_layers
from keras_attnvariants.backend.shapes import as_matrix
from keras_attnvariants.backend.shapes import with_lead_of
from keras_attnvariants.backend.slices import take
from keras_attnvariants.utils.garbage import no_explicit_collection
from keras_attnvariants.utils.typing import Tensor

# 8-bit integers from minus this to this are used.
INT8_MAX = 127.0

# The activations that change nothing.
LINEAR = None, keras.activations.linear

_portable = contextvars.ContextVar("portable", default=False)
_constant_integers = contextvars.ContextVar("constant_integers", default=False)

# Within `columns_computed_once`, `column_ends` of each scale, by its identity.
_column_ends: contextvars.ContextVar[dict[int, Tensor]]
_column_ends = contextvars.ContextVar("column_ends")


@contextlib.contextmanager
def portable() -> Iterator[None]:
    """Graphs traced in this context run wherever TensorFlow does, fast or not."""
    token = _portable.set(True)
    try:
        yield
    finally:
        _portable.reset(token)


@contextlib.contextmanager
def constant_integers() -> Iterator[None]:
    """Graphs traced in this context may keep matrices of integers from the first call.

    oneDNN arranges a matrix for the processor before it multiplies, which takes longer
    than the product with a few rows. No quantized weight may change later, and results
    have no gradient.
    """
    token = _constant_integers.set(True)
    try:
        yield
    finally:
        _constant_integers.reset(token)


@contextlib.contextmanager
def columns_computed_once(model: keras.layers.Layer) -> Iterator[None]:
    """A scope for loops, in which the scales of columns are not computed at each use.

    Args:
        model: whose scales may not change within the scope.
    """
    with use_column_ends(ends_of_columns(model)):
        yield


def ends_of_columns(model: keras.layers.Layer) -> dict[int, Tensor]:
    """`column_ends` of all scales that products here need, by their identities."""
    layers = [layer for layer in nested_layers(model) if is_plain_int8(layer)]
    is_used = bool(layers) and is_fast_here()
    scales = [scale_of(layer) for layer in layers] if is_used else []
    return {id(scale): column_ends(scale) for scale in scales}


@contextlib.contextmanager
def use_column_ends(ends: dict[int, Tensor]) -> Iterator[None]:
    """A scope in which `column_ends` finds what `ends_of_columns` returned."""
    token = _column_ends.set(ends)
    try:
        yield
    finally:
        _column_ends.reset(token)


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
        outputs = super().call(rows, training)
        is_product = self.bias is None and self.activation in LINEAR
        is_float = self.quantization_mode is None
        return packable(outputs) if is_product and is_float else outputs

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """As in Keras, whose check of the type would refuse a subclass."""
        with no_explicit_collection():  # Keras collects after each kernel.
            super().quantize(mode, type_check=False, config=config)

    def quantized_call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        floats = dequantized(self.kernel)
        if floats is not None:
            return float_product(inputs, floats, self.bias, self.activation)
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
        is_float = self.quantization_mode is None
        return with_lead_of(inputs, packable(logits) if is_float else logits)

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """As in Keras, whose check of the type would refuse a subclass."""
        with no_explicit_collection():  # Keras collects after each kernel.
            super().quantize(mode, type_check=False, config=config)

    def quantized_call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        floats = dequantized(self.embeddings)
        if floats is not None and not reverse:
            return ops.take(floats, inputs, axis=0)
        if floats is not None:
            return float_product(inputs, ops.transpose(floats))
        if not is_fast_for(self):
            return super().quantized_call(inputs, reverse)
        if reverse:
            return multiply(inputs, self.embeddings, self.embeddings_scale, True)
        rows, scale = (
            take(ops.convert_to_tensor(weight), inputs)
            for weight in (self.embeddings, self.embeddings_scale)
        )
        return ops.cast(rows, self.compute_dtype) / ops.expand_dims(scale, axis=-1)


@dataclass(frozen=True)
class Quantized:
    """A matrix of 8-bit integers that a layer multiplies with.

    Attributes:
        integers: int8 `[I, O]`, or `[O, I]` if `transposed`.
        scale: `[O]`, integers per unit of the floats that they stand for.
        transposed: whether the integers are transposed.
        dtype: in which the layer computes.
    """

    integers: keras.Variable
    scale: keras.Variable
    transposed: bool
    dtype: str

    def floats(self) -> Tensor:
        """The floats that the integers stand for, in the shape of these."""
        scale = ops.cast(self.scale.value, "float32")
        floats = ops.cast(self.integers.value, "float32")
        floats /= scale[:, None] if self.transposed else scale
        return ops.cast(floats, self.dtype)


def quantized_matrices(model: keras.layers.Layer) -> list[Quantized]:
    """The quantized matrices that may be given as floats, see `dequantized`."""
    layers = [layer for layer in nested_layers(model) if is_plain_int8(layer)]
    return [
        Quantized(layer.kernel, layer.kernel_scale, False, layer.compute_dtype)
        if isinstance(layer, Dense)
        else Quantized(
            layer.embeddings, layer.embeddings_scale, True, layer.compute_dtype
        )
        for layer in layers
    ]


def scale_of(layer: keras.layers.Layer) -> keras.Variable:
    """The scale of the columns of a quantized layer of this file."""
    dense = isinstance(layer, Dense)
    return layer.kernel_scale if dense else layer.embeddings_scale


def dequantized(integers: keras.Variable) -> Tensor | None:
    """The floats that a `keras.StatelessScope` gives in the place of integers, or none.

    In such a scope, layers multiply with the floats, and do not round their inputs.
    """
    value = integers.value
    is_float = keras.backend.is_float_dtype(value.dtype)
    return ops.convert_to_tensor(value) if is_float else None


def float_product(
    inputs: Tensor,
    matrix: Tensor,
    bias: Tensor | None = None,
    activation: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """`[..., I]` times `[I, O]`, as one product of matrices: `[..., O]`."""
    outputs = ops.matmul(as_matrix(inputs), matrix)
    outputs = packable(outputs) if bias is None else ops.add(outputs, bias)
    outputs = outputs if activation is None else activation(outputs)
    return with_lead_of(inputs, outputs)


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
    """Whether `multiply` works in the current computation: in a graph, on a CPU.

    What is prepared eagerly within `constant_integers` is for a graph.
    """
    if name() != "tensorflow" or _portable.get():
        return False
    is_graph = _constant_integers.get() or in_graph()
    return is_graph and not in_xla() and on_cpu()


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

    if _constant_integers.get():
        outputs = rounded_product(rows, kernel, ends, transposed)
    else:
        outputs = product(rows)
    return with_lead_of(inputs, outputs)


def column_ends(kernel_scale: Tensor) -> Tensor:
    """The float that `INT8_MAX` stands for in each column, float32 `[O]`."""
    known = _column_ends.get({}).get(id(kernel_scale))
    if known is not None:
        return known
    return INT8_MAX / ops.cast(ops.convert_to_tensor(kernel_scale), "float32")


def rounded_product(
    rows: Tensor, kernel: Tensor, ends: Tensor, transposed: bool = False
) -> Tensor:
    """Product of floats `[N, I]`, rounded to 8-bit integers row by row, with a kernel.

    Args:
        rows: `[N, I]`, in float32 or bfloat16, the dtype of the result.
        kernel: int8 `[I, O]`, or `[O, I]` if `transposed`.
        ends: `column_ends`.
        transposed: whether the kernel is transposed.

    Returns:
        `[N, O]`.
    """
    import tensorflow as tf

    floats = tf.cast(rows, "float32")
    peak = tf.reduce_max(tf.abs(floats), axis=-1, keepdims=True)
    peak = tf.maximum(peak, keras.config.epsilon())
    integers = tf.round(floats * (INT8_MAX / peak))
    # As if INT8_MAX stood for 1 in every row.
    if _constant_integers.get() or is_onednn_exact():
        outputs = onednn_product(
            tf.cast(integers, "int8"),
            *(kernel, tf.ones(()), ends, transposed, _constant_integers.get()),
        )
    else:
        matrix = tf.cast(kernel, "float32")
        sums = tf.matmul(integers, matrix, transpose_b=transposed)
        outputs = sums * (ends / INT8_MAX**2)
    return tf.cast(outputs * peak, rows.dtype)
