"""Values with a gradient of one's own."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend

X = np.array([1.0, 2.0, 3.0], "float32")


def gradient_of(function, x):
    """The gradient of the sum of what a function returns."""
    if backend.name() == "tensorflow":
        import tensorflow as tf

        x = tf.convert_to_tensor(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = ops.sum(function(x))
        return tape.gradient(total, x)
    import jax

    return jax.grad(lambda x: ops.sum(function(x)))(x)


def of_one_output(x):
    """The value `5 x`, with the gradient `2 x` of what is given; `x` is saved."""
    return backend.with_gradient(5 * x, x, lambda given, saved: 2 * given * saved, x)


def of_two_outputs(x):
    """One of them unused, and inputs and what is saved in structures."""
    found = backend.with_gradient(
        {"used": 5 * x, "unused": x},
        (x,),
        lambda given, saved: (given["used"] * saved["factor"] + given["unused"],),
        {"factor": 3 * x},
    )
    return found["used"]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("function, factor", [(of_one_output, 2), (of_two_outputs, 3)])
def test_the_gradient_is_the_given_one(function, factor, compiled):
    x = ops.convert_to_tensor(X)
    np.testing.assert_array_equal(ops.convert_to_numpy(function(x)), 5 * X)

    def both(x):
        return gradient_of(function, x)

    found = (backend.jit(both) if compiled else both)(x)
    np.testing.assert_allclose(ops.convert_to_numpy(found), factor * X)
