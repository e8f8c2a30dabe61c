"""Matrix products as decoding uses them, for dense layers and embeddings."""

import itertools
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants.backend import int8
from keras_attnvariants.backend.compilation import name
from keras_attnvariants.backend.shapes import as_matrix
from keras_attnvariants.backend.shapes import with_lead_of
from keras_attnvariants.backend.slices import take
from keras_attnvariants.utils.typing import Tensor

# The activations that change nothing.
LINEAR = None, keras.activations.linear


class Product:
    """The product `activation(x W + b)` of a dense layer.

    Args:
        kernel: `W`, `[I, O]`, in the dtype in which it is multiplied.
        bias: `b`, `[O]`, or `None`.
        activation: a function of tensors, or `None`.

    Attributes:
        units: the width `O` of the outputs.
        dtype: of inputs and outputs; others are cast to it.
        joint: for tuples of products of the same inputs, of which this one is the
            first, by their identities: one product that stands for all of them.
    """

    def __init__(
        self,
        kernel: Any,
        bias: Any = None,
        activation: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.kernel = kernel
        self.bias = bias
        self.activation = None if activation in LINEAR else activation
        self.units = kernel.shape[-1]
        self.dtype = keras.backend.standardize_dtype(kernel.dtype)
        self.joint: dict[tuple[int, ...], Product] = {}

    def __call__(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """`[..., I]` to `[..., O]`."""
        outputs = self.multiply(ops.cast(as_matrix(inputs), self.dtype))
        if self.activation is not None:
            outputs = self.activation(outputs)
        return with_lead_of(inputs, outputs)

    def multiply(self, rows: Tensor) -> Tensor:
        """`[N, I]` to `[N, O]`, before the activation."""
        outputs = ops.matmul(rows, self.kernel)
        return outputs if self.bias is None else ops.add(outputs, self.bias)

    def joined(self, others: Sequence["Product"]) -> "Product":
        """This product and others of its kind, of the same inputs, side by side."""
        parts = [self, *others]
        bias = None if self.bias is None else side_by_side([p.bias for p in parts])
        return type(self)(side_by_side([p.kernel for p in parts]), bias)


class ConstantProduct(Product):
    """A product with arrays, which become constants of a TensorFlow graph.

    oneDNN, which multiplies for TensorFlow on x86 processors, first brings a matrix
    into an order of its own: at each product with a variable, but only once with a
    constant, provided that a bias is added.
    """

    def multiply(self, rows: Tensor) -> Tensor:
        if self.bias is not None or name() != "tensorflow":
            return super().multiply(rows)
        import tensorflow as tf

        product = tf.matmul(rows, self.kernel)
        with tf.init_scope():  # A constant of this graph would be simplified away.
            zeros = tf.zeros(product.shape[-1:], product.dtype)
        return tf.nn.bias_add(product, zeros)


class IntegerProduct(Product):
    """A product with 8-bit integers; each row of the inputs is rounded to them.

    Args:
        kernel: int8 `[I, O]`, or `[O, I]` if `transposed`.
        ends: float32 `[O]`, see `keras_attnvariants.backend.int8.column_ends`.
        dtype: of inputs and outputs.
        bias, activation: as of `Product`.
        transposed: whether the kernel is transposed.
        fixed: whether the kernel will never change, see `rounded_product`.
    """

    def __init__(
        self,
        kernel: Any,
        ends: Any,
        dtype: str,
        bias: Any = None,
        activation: Callable[[Tensor], Tensor] | None = None,
        transposed: bool = False,
        fixed: bool = False,
    ) -> None:
        super().__init__(kernel, bias, activation)
        self.ends = ends
        self.dtype = dtype
        self.units = ends.shape[0]
        self.transposed = transposed
        self.fixed = fixed

    def multiply(self, rows: Tensor) -> Tensor:
        outputs = int8.rounded_product(
            rows, self.kernel, self.ends, self.transposed, self.fixed
        )
        return outputs if self.bias is None else ops.add(outputs, self.bias)

    def joined(self, others: Sequence[Product]) -> Product:
        parts = [self, *others]
        bias = None if self.bias is None else side_by_side([p.bias for p in parts])
        return IntegerProduct(
            side_by_side([part.kernel for part in parts]),
            side_by_side([part.ends for part in parts if hasattr(part, "ends")]),
            self.dtype,
            bias,
            fixed=self.fixed,
        )


class Table:
    """An embedding that also projects back, as a table of rows and a product.

    Args:
        rows: `[V, D]`, in the compute dtype.
        product: of outputs `[..., D]` to `[..., V]`.
        scale: of rows of 8-bit integers, `[V]`: integers per unit; `None` for floats.
        dtype: of the rows that are looked up.
    """

    def __init__(
        self, rows: Any, product: Product, scale: Any = None, dtype: str = "float32"
    ) -> None:
        self.rows = rows
        self.product = product
        self.scale = scale
        self.dtype = dtype

    def __call__(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        """Ids `[...]` to `[..., D]`; in reverse `[..., D]` to `[..., V]`."""
        if reverse:
            return self.product(inputs)
        rows = take(self.rows, inputs)
        if self.scale is None:
            return rows
        scale = take(self.scale, inputs)
        return ops.cast(rows, self.dtype) / ops.cast(scale, self.dtype)[..., None]


def project_jointly(layers: Sequence[Any], inputs: Tensor) -> list[Tensor]:
    """The outputs of several dense layers, or products, for the same inputs.

    Args:
        layers: built layers with the same inputs, or what stands for them in an
            `inference_copy`.
        inputs: `[..., width]`.
    """
    outputs = joint_product(layers, inputs)
    if outputs is None:
        return [layer(inputs) for layer in layers]
    borders = list(itertools.accumulate(layer.units for layer in layers))[:-1]
    return list(ops.split(outputs, borders, axis=-1))


def joint_product(layers: Sequence[Any], inputs: Tensor) -> Tensor | None:
    """The outputs that `project_jointly` returns, side by side.

    Returns:
        `[..., sum of the widths]`; `None` if they do not come from one product.
    """
    products = getattr(layers[0], "joint", {})
    product = products.get(tuple(map(id, layers)))
    return None if product is None else product(inputs)


def side_by_side(parts: Sequence[Any]) -> Any:
    """Tensors or arrays, concatenated along their last axis."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis=-1)
    return ops.concatenate(parts, axis=-1)
