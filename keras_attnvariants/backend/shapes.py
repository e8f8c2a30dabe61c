"""Arithmetic on lengths that may be Python integers or scalar tensors.

`keras.ops.shape` gives integers for static axes and, in a TensorFlow graph,
tensors for dynamic ones. Static lengths have to stay integers, or JAX and XLA
can no longer use them as shapes.
"""

from keras import ops


def at_most(length, bound: int):
    """The smaller of a length and a bound, an integer if the length is one."""
    if isinstance(length, int):
        return min(length, bound)
    return ops.minimum(length, bound)


def at_least(length, bound: int):
    """The larger of a length and a bound, an integer if the length is one."""
    if isinstance(length, int):
        return max(length, bound)
    return ops.maximum(length, bound)
