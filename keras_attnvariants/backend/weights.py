"""Weights in the form in which they are used, for loops that use them often."""

import contextlib
import contextvars
import itertools
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend.int8 import LINEAR
from keras_attnvariants.backend.int8 import column_ends
from keras_attnvariants.backend.int8 import columns_computed_once
from keras_attnvariants.backend.int8 import dequantized
from keras_attnvariants.backend.int8 import is_fast_here
from keras_attnvariants.backend.int8 import is_plain_int8
from keras_attnvariants.backend.int8 import rounded_product
from keras_attnvariants.backend.packing import packable
from keras_attnvariants.backend.private import nested_layers
from keras_attnvariants.backend.shapes import as_matrix
from keras_attnvariants.backend.shapes import with_lead_of
from keras_attnvariants.utils.typing import Tensor

# What layers read in their compute dtype, and for one purpose only.
WEIGHTS = {
    keras.layers.Dense: ("kernel", "bias"),
    keras.layers.EinsumDense: ("kernel", "bias"),
    keras.layers.Embedding: ("embeddings",),
}


# By the identities of layers: their joint kernel, the ends of its columns if it is one
# of 8-bit integers, and their joint bias if any.
JointKernels = dict[tuple[int, ...], list[Tensor]]

_joint_kernels: contextvars.ContextVar[JointKernels]
_joint_kernels = contextvars.ContextVar("joint_kernels")


@contextlib.contextmanager
def cast_matrices(model: Any) -> Iterator[None]:
    """A scope in which matrices and biases have the dtype in which they are used.

    With a mixed policy, each use of a weight casts it. That is negligible in a batch of
    training, but half of the time of a decoding step. Within the scope, each of them is
    cast once, outside the loop that reads it, and the results are the same. Also the
    kernels that `project_jointly` needs are put side by side once. No weight may be
    changed within the scope.

    Args:
        model: a Keras model or layer. For any other object the scope has no effect.
    """
    if not isinstance(model, keras.layers.Layer):
        # An empty `StatelessScope` would hide the values of an outer one.
        yield
        return
    with cast_weights(model), columns_computed_once(model):
        with use_joint_kernels(joint_kernels(model)):
            yield


@contextlib.contextmanager
def use_joint_kernels(kernels: JointKernels) -> Iterator[None]:
    """A scope in which `project_jointly` finds what `joint_kernels` returned."""
    token = _joint_kernels.set(kernels)
    try:
        yield
    finally:
        _joint_kernels.reset(token)


def cast_weights(model: keras.layers.Layer) -> keras.StatelessScope:
    """A scope in which the weights of a model have the dtype in which they are used."""
    scope = keras.StatelessScope()
    for variable in model.variables:
        scope.add_update((variable, variable.value))
    for weight in model.weights:
        # As tensors, or TensorFlow would read each again wherever it is used.
        if read := getattr(weight.value, "read_value", None):
            scope.add_update((weight, read()))
    for weight, dtype in weights_to_cast(model):
        scope.add_update((weight, ops.cast(weight, dtype)))
    return scope


def weights_to_cast(model: keras.layers.Layer) -> Iterator[tuple[keras.Variable, str]]:
    """What layers read in another dtype than it has, and that dtype."""
    for layer in nested_layers(model):
        for weight in weights_of(layer):
            if weight.dtype != layer.compute_dtype:
                yield weight, layer.compute_dtype


def weights_of(layer: keras.layers.Layer) -> list[keras.Variable]:
    """The variables of floats that a layer multiplies with or adds.

    Of a quantized layer, that is the bias alone.
    """
    for kind, names in WEIGHTS.items():
        if isinstance(layer, kind):
            quantized = layer.quantization_mode is not None
            found = [getattr(layer, n) for n in names if not quantized or n == "bias"]
            return [weight for weight in found if isinstance(weight, keras.Variable)]
    return []


def joint_kernels(model: keras.layers.Layer) -> JointKernels:
    """Kernels, and biases, side by side of all layers that have the same inputs.

    These are the `joint_projections` of a layer, or what its method `joint_groups`
    returns: several such tuples.
    """
    found = {}
    for layer in nested_layers(model):
        groups = [getattr(layer, "joint_projections", ())]
        if hasattr(layer, "joint_groups"):
            groups += layer.joint_groups()
        for group in groups:
            if parts := joint_kernel(group):
                found[tuple(map(id, group))] = parts
    return found


def joint_kernel(layers: Sequence[keras.layers.Dense]) -> list[Tensor]:
    """The kernel, and bias if any, that stand for those of several layers.

    The list is empty if not all layers are plain products of equally wide inputs.
    """
    products = [plain_product(dense) for dense in layers]
    given = [product for product in products if product is not None]
    forms = {
        (len(product), product[0].shape[0], is_int8(product[0])) for product in given
    }
    if len(forms) != 1 or len(given) < len(products):
        return []
    return [ops.concatenate(parts, axis=-1) for parts in zip(*given, strict=True)]


def plain_product(dense: keras.layers.Dense) -> list[Tensor] | None:
    """What a layer multiplies with and adds, if it does nothing else.

    Returns:
        A matrix of floats, or one of 8-bit integers and the ends of its columns; then
        the bias if any.
    """
    if dense.activation not in LINEAR:
        return None
    kernel: Tensor = dense.kernel
    parts = [ops.convert_to_tensor(kernel)]
    if dense.quantization_mode is not None:
        if not is_plain_int8(dense):
            return None
        if dequantized(kernel) is None:
            if not is_fast_here():
                return None
            parts.append(column_ends(dense.kernel_scale))
    if dense.bias is not None:
        parts.append(ops.cast(dense.bias, dense.compute_dtype))
    return parts


def project_jointly(
    layers: Sequence[keras.layers.Dense], inputs: Tensor
) -> list[Tensor]:
    """The outputs of several dense layers for the same inputs.

    Within `cast_matrices` they come from one product, if the layers are the
    `joint_projections` of a layer, or one of its `joint_groups`: few rows take about as
    long for three matrices as for one.

    Args:
        layers: built layers with the same inputs.
        inputs: `[..., width]`.
    """
    outputs = joint_product(layers, inputs)
    if outputs is None:
        return [layer(inputs) for layer in layers]
    borders = list(itertools.accumulate(layer.units for layer in layers))[:-1]
    return list(ops.split(outputs, borders, axis=-1))


def joint_product(
    layers: Sequence[keras.layers.Dense], inputs: Tensor
) -> Tensor | None:
    """The outputs that `project_jointly` returns, side by side.

    Returns:
        `[..., sum of the widths]`; `None` if they do not come from one product.
    """
    parts = _joint_kernels.get({}).get(tuple(map(id, layers)))
    if parts is None:
        return None
    kernel, *others = parts
    rows = as_matrix(inputs)
    if is_int8(kernel):
        ends, *bias = others
        outputs = rounded_product(rows, kernel, ends)
    else:
        bias, outputs = others, ops.matmul(rows, kernel)
        outputs = outputs if bias else packable(outputs)
    outputs = ops.add(outputs, bias[0]) if bias else outputs
    return with_lead_of(inputs, outputs)


def is_int8(matrix: Tensor) -> bool:
    """Whether a matrix holds 8-bit integers."""
    return bool(keras.backend.standardize_dtype(matrix.dtype) == "int8")
