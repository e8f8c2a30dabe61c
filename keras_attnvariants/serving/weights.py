"""The weights of an exported model, in the form in which it computes with them."""

import itertools
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_attnvariants.backend import Quantized
from keras_attnvariants.backend import quantized_matrices
from keras_attnvariants.backend import weights_to_cast

_numbers = itertools.count()


class StoredWeights:
    """The weights of a model, stored once, in the dtype in which they are read.

    What a mixed policy would cast at every request is stored in the compute dtype.
    Matrices of 8-bit integers are stored as such. They become matrices of floats in the
    compute dtype once, when the exported model is loaded, unless it multiplies with
    integers.

    Args:
        model: a Keras model on TensorFlow, built.
        multiplies_integers: whether matrices of integers stay what they are.

    Attributes:
        variables: what is stored.
        dequantized: what is made of it at loading.
    """

    def __init__(self, model: keras.Model, multiplies_integers: bool = False) -> None:
        dtypes = {id(weight): dtype for weight, dtype in weights_to_cast(model)}
        integers = [] if multiplies_integers else quantized_matrices(model)
        self.variables = [stored(w, dtypes.get(id(w))) for w in model.weights]
        self.dequantized = [Dequantized(matrix) for matrix in integers]
        self._values = list(zip(model.weights, self.variables, strict=True))
        self._values += [
            (matrix.integers, floats.values)
            for matrix, floats in zip(integers, self.dequantized, strict=True)
        ]

    def arrays(self) -> list[tuple[keras.Variable, np.ndarray]]:
        """What is stored, as arrays: matrices of floats where there are integers."""
        return [(weight, value.numpy()) for weight, value in self._values]

    def scope(self) -> keras.StatelessScope:
        """The scope in which functions that are traced read what is stored."""
        scope = keras.StatelessScope()
        for weight, value in self._values:
            scope.add_update((weight, value))
        return scope


def stored(weight: keras.Variable, dtype: str | None) -> tf.Variable:
    """The variable of a weight, or a copy of it in another dtype."""
    if dtype is None:
        return weight.value
    return tf.Variable(tf.cast(weight.value, dtype), trainable=False)


class Dequantized(tf.saved_model.experimental.TrackableResource):
    """A matrix of floats that is made from one of 8-bit integers at loading.

    It is not freed with what was loaded, because signatures may outlive that.

    Args:
        matrix: the integers and their scale.

    Attributes:
        values: the floats, as functions that are traced here read them.
    """

    def __init__(self, matrix: Quantized) -> None:
        super().__init__()
        self.matrix = matrix
        self.values = tf.Variable(matrix.floats(), trainable=False)
        self.name = f"dequantized_{next(_numbers)}"
        # The base class makes the handle when it is first asked for, and keeps it.
        self.handle = self.resource_handle

    def _create_resource(self) -> Any:
        if tf.executing_eagerly():
            return self.values.handle
        # Found by its name in a session; loaded in Python, it gets another each time.
        dtype, shape = self.values.dtype, self.values.shape
        return tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=self.name)

    def _initialize(self) -> None:
        tf.raw_ops.AssignVariableOp(
            resource=self.resource_handle, value=self.matrix.floats()
        )
