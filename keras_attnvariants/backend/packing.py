"""Matrices as constants of a graph, of which oneDNN keeps a packed copy.

oneDNN, which multiplies matrices for TensorFlow on x86 processors, first brings the
second one into an order of its own. It does so at every product with a variable, but
only once with a constant, provided that a bias is added to the product.
"""

import contextlib
import contextvars
from collections.abc import Iterable
from collections.abc import Iterator

import keras
import numpy as np

from keras_attnvariants.backend.compilation import name
from keras_attnvariants.utils.typing import Tensor

_constant_weights = contextvars.ContextVar("constant_weights", default=False)


@contextlib.contextmanager
def constant_weights(
    values: Iterable[tuple[keras.Variable, np.ndarray]],
) -> Iterator[None]:
    """A scope in which variables are constants of the graph that is traced in it.

    A loop has to be entered outside of the scope, or its body would be given tensors.

    Args:
        values: the variables, and arrays in the dtype in which they are used.
    """
    scope = keras.StatelessScope()
    for variable, array in values:
        # As an array: it becomes a constant of the graph that reads it.
        scope.add_update((variable, array))
    token = _constant_weights.set(True)
    try:
        with scope:
            yield
    finally:
        _constant_weights.reset(token)


def packable(product: Tensor) -> Tensor:
    """A product of matrices, with a bias of zeros if weights are constants.

    Args:
        product: `[N, O]`, the output of a product without a bias.
    """
    if not _constant_weights.get() or name() != "tensorflow":
        return product
    import tensorflow as tf

    with tf.init_scope():  # A constant of this graph would be simplified away.
        zeros = tf.zeros(product.shape[-1:], product.dtype)
    return tf.nn.bias_add(product, zeros)
