"""Copies of models that hold their weights in the form in which decoding uses them.

A decoding step multiplies few rows by many matrices. Preparing a matrix at each call
(casting it, transposing it, scaling its columns) then takes longer than the product,
and so does multiplying the same rows by several matrices one by one. `inference_copy`
prepares all matrices once: dense layers and embeddings become products.
"""

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants.backend.blocks import splits_rows
from keras_attnvariants.backend.compilation import Constant
from keras_attnvariants.backend.compilation import shared_tensor
from keras_attnvariants.backend.layers import Dense
from keras_attnvariants.backend.layers import ReversibleEmbedding
from keras_attnvariants.backend.private import weights_to_cast
from keras_attnvariants.backend.products import IntegerProduct
from keras_attnvariants.backend.products import Product
from keras_attnvariants.backend.products import Table
from keras_attnvariants.backend.products import column_maxima

# Returns the tensor or array that replaces a variable or `backend.constant` in a copy.
Values = Callable[[Any], Any]

# The activations that change nothing.
LINEAR = None, keras.activations.linear

# Not copied: attributes that Keras has in every layer, and objects of other packages.
OF_KERAS = frozenset(vars(keras.Model()))
LIBRARIES = frozenset({"keras", "tensorflow", "jax", "jaxlib", "numpy", "ml_dtypes"})


def inference_copy(
    model: Any,
    values: Values | None = None,
    fixed: bool = False,
    rows: Values | None = None,
    columns: Values | None = None,
    pads: bool = True,
) -> Any:
    """A copy of a model or layer that holds its weights in the form for decoding.

    It computes the same as the model in inference. It can only be called: it is not a
    Keras layer that can be built, trained or saved.

    Args:
        model: a built model or layer; the copy has its methods.
        values: returns the tensor or array that replaces a variable or constant. By
            default, this is the current value of a variable (within a graph, its value
            in the current scope), and for a constant a tensor that all graphs share.
            Arrays become constants of a graph. If floats are returned for a matrix of
            8-bit integers, they are multiplied instead.
        fixed: whether weights never change; oneDNN then multiplies 8-bit integers and
            keeps its prepared matrices, in graphs for any processor.
        rows: returns the matrix in which a reversible embedding looks up ids, in its
            compute dtype; by default the same as `values`.
        columns: returns the matrix `[D, V]` by which a reversible embedding multiplies,
            in its compute dtype, or `None` for the transpose of `values`, the default;
            columns of zeros may follow.
        pads: whether columns of zeros are added to matrices where TensorFlow is then
            faster; not for other programs that run a graph.
    """
    return _Copier(values or current_value, fixed, rows, columns, pads).copy(model)


def shallow_copy(original: Any, **attributes: Any) -> Any:
    """An object with the attributes of another, some of which have other values."""
    copy = object.__new__(type(original))
    # Bypasses Keras, which would track the attributes.
    copy.__dict__.update(vars(original) | attributes)
    return copy


def current_value(variable: Any) -> Any:
    """The value of a variable or constant as a tensor; tensors are returned as is."""
    value = getattr(variable, "value", shared_tensor(variable))
    # Otherwise TensorFlow would read the variable at each use.
    return value.read_value() if hasattr(value, "read_value") else value


@dataclass
class _Copier:
    """Copies objects that refer to each other, each of them once.

    Args:
        values, fixed, rows, columns, pads: as for `inference_copy`.
    """

    values: Values
    fixed: bool
    rows: Values | None
    columns: Values | None
    pads: bool
    # Copies by the id of the original, which is kept so that its id is not reused.
    copies: dict[int, tuple[Any, Any]] = field(default_factory=dict, init=False)

    def copy(self, original: Any) -> Any:
        """The copy of an object, or the object itself if it holds no layers."""
        if id(original) not in self.copies:
            self.copies[id(original)] = original, original
            self.copies[id(original)] = original, self.new(original)
        return self.copies[id(original)][1]

    def new(self, original: Any) -> Any:
        """A new copy of an object."""
        if isinstance(original, types.MethodType):
            return types.MethodType(original.__func__, self.copy(original.__self__))
        if isinstance(original, (dict, types.MappingProxyType)):
            return {key: self.copy(part) for key, part in original.items()}
        if isinstance(original, (list, tuple)):
            parts = [self.copy(part) for part in original]
            if hasattr(original, "_fields"):
                return type(original)(*parts)
            return tuple(parts) if isinstance(original, tuple) else parts
        if isinstance(original, (keras.Variable, Constant)):
            return self.values(original)
        if type(original) in (Dense, keras.layers.Dense):
            return self.product(original)
        if isinstance(original, ReversibleEmbedding):
            return self.table(original)
        return self.object(original) if may_hold_layers(original) else original

    def object(self, original: Any) -> Any:
        """A copy of an object whose attributes are copies too."""
        if getattr(original, "quantization_mode", None) is not None:
            return original  # Keras computes it.
        copy = shallow_copy(original)
        self.copies[id(original)] = original, copy
        for key, value in vars(original).items():
            if key not in OF_KERAS:
                copy.__dict__[key] = self.copy(value)
        for key in weights_to_cast(original):
            value = copy.__dict__.get(key)
            copy.__dict__[key] = cast(value, original.compute_dtype)
        join_projections(copy)
        return copy

    def product(self, dense: keras.layers.Dense) -> Any:
        """The product of a dense layer."""
        kernel = self.values(dense.kernel)
        options: dict[str, Any] = {
            "dtype": dense.compute_dtype,
            "bias": cast(self.copy(dense.bias), dense.compute_dtype),
            "activation": None if dense.activation in LINEAR else dense.activation,
        }
        if keras.backend.is_float_dtype(kernel.dtype):
            matrix = cast(kernel, dense.compute_dtype)
            return Product(matrix, **options, pads=self.pads)
        if not self.multiplies_integers(dense):
            return dense
        maxima = column_maxima(self.values(dense.kernel_scale))
        return IntegerProduct(kernel, **options, maxima=maxima, fixed=self.fixed)

    def table(self, embedding: ReversibleEmbedding) -> Any:
        """The table of an embedding layer."""
        dtype, rows = embedding.compute_dtype, self.values(embedding.embeddings)
        if keras.backend.is_float_dtype(rows.dtype):
            rows = cast(rows, dtype)
            columns = self.columns(embedding.embeddings) if self.columns else None
            columns = transposed(rows) if columns is None else columns
            rows = self.rows(embedding.embeddings) if self.rows else rows
            size = int(embedding.embeddings.shape[0])
            product = Product(columns, dtype, units=size, pads=self.pads)
            return Table(rows, product)
        if not self.multiplies_integers(embedding):
            return embedding
        scale = self.values(embedding.embeddings_scale)
        options = {"maxima": column_maxima(scale), "fixed": self.fixed}
        product = IntegerProduct(rows, dtype, transposed=True, **options)
        return Table(rows, product, scale)

    def multiplies_integers(self, layer: Any) -> bool:
        """Whether a quantized layer is computed as a product of integers here."""
        if self.fixed or not splits_rows():
            return self.fixed and is_plain_int8(layer)
        import tensorflow as tf

        # oneDNN needs a graph.
        return is_plain_int8(layer) and not tf.executing_eagerly()


def join_projections(layer: Any) -> None:
    """Joins the products in a copy of a layer that always have the same inputs.

    `joint_projections()` of a built layer returns groups of them. For few rows, three
    joined matrices take about as long as one.
    """
    has_groups = hasattr(layer, "joint_projections") and layer.built
    for group in layer.joint_projections() if has_groups else ():
        if not all(isinstance(p, Product) and p.activation is None for p in group):
            continue
        if len({(type(p), p.kernel.shape[0], p.bias is None) for p in group}) == 1:
            first, *others = group
            first.joint[tuple(map(id, group))] = first.joined(others)


def is_plain_int8(layer: keras.layers.Layer) -> bool:
    """Whether a layer is one of `backend.layers`, quantized in the usual way."""
    return (
        isinstance(layer, (Dense, ReversibleEmbedding))
        and layer.quantization_mode == "int8"
        and layer.inputs_quantizer is not None
        and not layer.lora_enabled
    )


def may_hold_layers(value: Any) -> bool:
    """Whether a value is a layer, or an object of this package or of a user."""
    if isinstance(value, keras.layers.Layer):
        return True
    is_code = isinstance(value, (type, types.ModuleType, types.FunctionType))
    module = type(value).__module__.partition(".")[0]
    is_known = module in LIBRARIES or module in sys.stdlib_module_names
    return hasattr(value, "__dict__") and not is_code and not is_known


def cast(value: Any, dtype: str) -> Any:
    """A tensor in a dtype. If it has this dtype already, or is `None`, it is kept."""
    if value is None or keras.backend.standardize_dtype(value.dtype) == dtype:
        return value
    return ops.cast(value, dtype)


def transposed(matrix: Any) -> Any:
    """`[V, D]` as `[D, V]`, in the memory order that a product reads."""
    if isinstance(matrix, np.ndarray):
        return np.ascontiguousarray(matrix.T)
    return ops.transpose(matrix)
