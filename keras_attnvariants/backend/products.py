"""Matrix products for decoding, for dense layers and embeddings.

On a CPU, TensorFlow's usual product takes several times as long for 8-bit integers as
for floats; oneDNN's kernel takes a fraction of that time. Where the kernel is not exact
(see `keras_attnvariants.backend.onednn`), the integers are multiplied as floats, whose
sums are exact up to 2^24, and beyond that have the precision of float32.
"""

import dataclasses
import itertools
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from keras_attnvariants.backend.compilation import in_xla
from keras_attnvariants.backend.compilation import name
from keras_attnvariants.backend.compilation import on_cpu
from keras_attnvariants.backend.onednn import is_onednn_exact
from keras_attnvariants.backend.onednn import onednn_product
from keras_attnvariants.backend.shapes import as_matrix
from keras_attnvariants.backend.shapes import take
from keras_attnvariants.backend.shapes import with_lead_of
from keras_attnvariants.utils.typing import Tensor

# The largest absolute value of the 8-bit integers.
INT8_MAX = 127.0

# Columns of zeros that are added to a matrix: one line of the cache, in float32.
PADDING = 16


@dataclasses.dataclass(eq=False)
class Product:
    """The product `activation(x W + b)` of a dense layer.

    A kernel that is an array becomes a constant of a TensorFlow graph. oneDNN, which
    multiplies for TensorFlow on x86 processors, first brings a matrix into its own
    layout: at each product with a variable, but only once with a constant, provided
    that a bias is added.

    Attributes:
        kernel: `W`, `[I, O]`, in the dtype in which it is multiplied; columns of zeros
            may follow.
        dtype: dtype of inputs and outputs; other inputs are cast to it.
        bias: `b`, `[O]`, or `None`.
        activation: a function of tensors, or `None`.
        units: the width `O` of the outputs, by default that of the kernel.
        pads: whether columns of zeros are added where that is faster.
        joint: products that replace several products of the same inputs, of which this
            one is the first. The keys are tuples of the ids of the replaced objects.
    """

    kernel: Any
    dtype: str
    bias: Any = None
    activation: Callable[[Tensor], Tensor] | None = None
    units: int = 0
    pads: bool = True
    joint: dict[tuple[int, ...], "Product"] = dataclasses.field(default_factory=dict)

    # Attributes with an entry, or a column, for each output.
    by_output: ClassVar[tuple[str, ...]] = ("kernel", "bias")

    def __post_init__(self) -> None:
        self.units = self.units or int(self.kernel.shape[-1])
        self._kernel, self._bias = self.kernel, self.bias
        if self.pads and needs_padding(self.kernel, self.dtype):
            self._kernel = padded(self.kernel)
            self._bias = None if self.bias is None else padded(self.bias)

    def __call__(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """`[..., I]` to `[..., O]`."""
        outputs = self.multiply(ops.cast(as_matrix(inputs), self.dtype))
        if self._bias is not None:
            outputs = ops.add(outputs, self._bias)
        if outputs.shape[-1] != self.units:
            outputs = outputs[:, : self.units]
        if self.activation is not None:
            outputs = self.activation(outputs)
        return with_lead_of(inputs, outputs)

    def multiply(self, rows: Tensor) -> Tensor:
        """`[N, I]` to `[N, O]`, without the bias."""
        outputs = ops.matmul(rows, self._kernel)
        is_constant = isinstance(self.kernel, np.ndarray) and name() == "tensorflow"
        if self.bias is not None or not is_constant:
            return outputs
        import tensorflow as tf

        with tf.init_scope():  # A constant of this graph would be simplified away.
            zeros = tf.zeros(outputs.shape[-1:], outputs.dtype)
        return tf.nn.bias_add(outputs, zeros)

    def joined(self, others: Sequence["Product"]) -> "Product":
        """Joins this product with others of its kind that have the same inputs."""
        parts = {
            key: side_by_side([getattr(part, key) for part in (self, *others)])
            for key in self.by_output
            if getattr(self, key) is not None
        }
        return dataclasses.replace(self, joint={}, units=0, **parts)


@dataclasses.dataclass(eq=False)
class IntegerProduct(Product):
    """A product with 8-bit integers; each row of the inputs is rounded to them.

    Attributes:
        kernel: int8 `[I, O]`, or `[O, I]` if `transposed`.
        maxima: float32 `[O]`, see `column_maxima`.
        transposed: whether the kernel is transposed.
        fixed: whether the kernel never changes, in a graph for processors on which
            integer products are exact. oneDNN arranges the kernel at the first product,
            which takes longer than a product with a few rows, and keeps the result.
        floats: the kernel as float32 `[I, O]`, where oneDNN is not exact.
    """

    maxima: Any = None
    transposed: bool = False
    fixed: bool = False
    floats: Any = dataclasses.field(default=None, init=False)

    by_output: ClassVar[tuple[str, ...]] = ("kernel", "bias", "maxima")

    def __post_init__(self) -> None:
        self.units, self._bias = int(self.maxima.shape[0]), self.bias
        if not self.fixed and not is_onednn_exact():
            # Computed only once: a search multiplies at every step.
            floats = ops.cast(self.kernel, "float32")
            self.floats = ops.transpose(floats) if self.transposed else floats

    def multiply(self, rows: Tensor) -> Tensor:
        import tensorflow as tf

        floats = tf.cast(rows, "float32")
        peak = tf.reduce_max(tf.abs(floats), axis=-1, keepdims=True)
        peak = tf.maximum(peak, keras.config.epsilon())
        integers = tf.round(floats * (INT8_MAX / peak))
        if self.floats is not None:
            outputs = tf.matmul(integers, self.floats) * (self.maxima / INT8_MAX**2)
        else:
            # Here, INT8_MAX stands for 1 in every row.
            integers, ones = tf.cast(integers, "int8"), tf.ones(())
            matrices = integers, self.kernel, ones, self.maxima
            outputs = onednn_product(*matrices, self.transposed, self.fixed)
        return tf.cast(outputs * peak, rows.dtype)


def column_maxima(kernel_scale: Any) -> Any:
    """The float that `INT8_MAX` stands for in each column, float32 `[O]`.

    Args:
        kernel_scale: `[O]`, integers per unit of the floats that they stand for; a
            tensor or an array, as the result.
    """
    if isinstance(kernel_scale, np.ndarray):
        return np.float32(INT8_MAX) / kernel_scale.astype("float32")
    return INT8_MAX / ops.cast(ops.convert_to_tensor(kernel_scale), "float32")


@dataclasses.dataclass(eq=False)
class Table:
    """An embedding that also projects back, as a table of rows and a product.

    Attributes:
        rows: `[V, D]`, in the compute dtype.
        product: the product of outputs `[..., D]` with the rows, `[..., V]`.
        scale: integers per unit, `[V]`, if rows are 8-bit integers; else `None`.
    """

    rows: Any
    product: Product
    scale: Any = None

    def __call__(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        """Ids `[...]` to `[..., D]`; in reverse `[..., D]` to `[..., V]`."""
        if reverse:
            return self.product(inputs)
        rows = take(self.rows, inputs)
        if self.scale is None:
            return rows
        dtype, scale = self.product.dtype, take(self.scale, inputs)
        return ops.cast(rows, dtype) / ops.cast(scale, dtype)[..., None]


def project_jointly(layers: Sequence[Any], inputs: Tensor) -> list[Tensor]:
    """The outputs of several dense layers, or products, for the same inputs.

    Args:
        layers: built layers with the same inputs, or their counterparts in an
            `inference_copy`.
        inputs: `[..., width]`.
    """
    product = getattr(layers[0], "joint", {}).get(tuple(map(id, layers)))
    if product is None:
        return [layer(inputs) for layer in layers]
    borders = list(itertools.accumulate(layer.units for layer in layers))[:-1]
    return list(ops.split(product(inputs), borders, axis=-1))


def side_by_side(parts: Sequence[Any]) -> Any:
    """Tensors or arrays, concatenated along their last axis."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis=-1)
    return ops.concatenate(parts, axis=-1)


def needs_padding(kernel: Any, dtype: str) -> bool:
    """Whether products are faster if columns of zeros follow those of a matrix.

    In TensorFlow on a CPU without XLA, products in float32 take up to twice as long if
    the rows of the matrix or of the result lie in the same sets of the processor's
    cache, as those of 512 or 1,024 columns do. Of a constant whose number of columns is
    a multiple of 32, oneDNN has one layout for 16 to 64 rows and another for fewer or
    more. The first product decides which one is kept; all that need the other one
    convert the matrix, which takes about as long as the product.

    Args:
        kernel: `[I, O]`: an array, which becomes a constant, a tensor, or a variable;
            variables are never padded.
        dtype: the dtype in which it is multiplied.
    """
    if dtype != "float32" or in_xla() or not on_cpu() or hasattr(kernel, "assign"):
        return False
    return int(kernel.shape[-1]) % (32 if isinstance(kernel, np.ndarray) else 256) == 0


def padded(matrix: Any) -> Any:
    """A matrix or vector, followed by `PADDING` columns or entries of zeros."""
    zeros = np.zeros((*matrix.shape[:-1], PADDING), "float32")
    return side_by_side([matrix, zeros])


def sums_bfloat16_in_float32() -> bool:
    """Whether only the result of a product of bfloat16 matrices is rounded.

    TensorFlow's own kernels round partial sums as well: products of 256 terms then have
    five times the error. On processors with AVX512-VNNI or AVX512-BF16, TensorFlow uses
    oneDNN's kernels, which sum in float32, as XLA programs always do.
    """
    matrix = ops.cast(np.random.default_rng(0).normal(size=(64, 64)), "bfloat16")
    exact = ops.convert_to_numpy(ops.cast(matrix, "float32")).astype("float64")
    exact = exact @ exact
    found = ops.convert_to_numpy(ops.cast(ops.matmul(matrix, matrix), "float32"))
    # Twice the error of rounding to 8 bits, and the error of float32 sums.
    return bool((np.abs(found - exact) <= 2**-8 * np.abs(exact) + 1e-4).all())
