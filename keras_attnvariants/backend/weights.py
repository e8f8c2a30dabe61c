"""Weights in the dtype that they are used in, for loops that use them often."""

import contextlib

import keras
from keras import ops

# Layers that look up or multiply a matrix in their compute dtype, and read it for
# nothing else.
MATRICES = {
    keras.layers.Dense: "kernel",
    keras.layers.EinsumDense: "kernel",
    keras.layers.Embedding: "embeddings",
}


def cast_matrices(model) -> contextlib.AbstractContextManager:
    """A scope in which a model's matrices are read in the dtype they are used in.

    With a mixed policy every use of a weight casts it. That is nothing beside a batch
    of training, and half of a step of decoding. Within the scope every matrix is cast
    once, outside of whatever loop reads it; results are the same. Nothing within it may
    change a weight.

    Args:
        model: a Keras model or layer. Anything else has no matrices.
    """
    if not isinstance(model, keras.layers.Layer):
        # An empty scope would hide what a scope around it knows.
        return contextlib.nullcontext()
    scope = keras.StatelessScope()
    for variable in model.variables:
        scope.add_update((variable, variable.value))
    for layer in model._flatten_layers():
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
