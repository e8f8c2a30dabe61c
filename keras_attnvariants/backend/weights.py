"""Weights in the dtype in which they are used, for loops that use them often."""

import contextlib
from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend.private import nested_layers

# Layers that read a matrix in their compute dtype, and for one purpose only.
MATRICES = {
    keras.layers.Dense: "kernel",
    keras.layers.EinsumDense: "kernel",
    keras.layers.Embedding: "embeddings",
}


def cast_matrices(model: Any) -> contextlib.AbstractContextManager[Any]:
    """A scope in which the matrices of a model have the dtype in which they are used.

    With a mixed policy, each use of a weight casts it. That is negligible in a batch of
    training, but half of the time of a decoding step. Within the scope, each matrix is
    cast once, outside the loop that reads it, and the results are the same. No weight
    may be changed within the scope.

    Args:
        model: a Keras model or layer. For any other object the scope has no effect.
    """
    if not isinstance(model, keras.layers.Layer):
        # An empty `StatelessScope` would hide the values of an outer one.
        return contextlib.nullcontext()
    scope = keras.StatelessScope()
    for variable in model.variables:
        scope.add_update((variable, variable.value))
    for layer in nested_layers(model):
        matrix = matrix_of(layer)
        if matrix is not None and matrix.dtype != layer.compute_dtype:
            scope.add_update((matrix, ops.cast(matrix, layer.compute_dtype)))
    return scope


def matrix_of(layer: keras.layers.Layer) -> keras.Variable | None:
    """The variable that a layer multiplies with, if it is a plain matrix."""
    for kind, name in MATRICES.items():
        if isinstance(layer, kind) and layer.quantization_mode is None:
            matrix = getattr(layer, name)
            return matrix if isinstance(matrix, keras.Variable) else None
    return None
