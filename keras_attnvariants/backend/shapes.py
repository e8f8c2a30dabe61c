"""Arithmetic on lengths that are Python integers or scalar tensors.

`keras.ops.shape` gives integers for static axes and, in a TensorFlow graph, tensors for
dynamic ones. Static lengths have to remain integers: JAX and XLA cannot use tensors as
shapes.
"""

from keras import ops

from keras_attnvariants.utils.typing import Size


def at_most(length: Size, bound: int) -> Size:
    """The smaller of a length and a bound, an integer if the length is one."""
    if isinstance(length, int):
        return min(length, bound)
    return ops.minimum(length, bound)


def at_least(length: Size, bound: int) -> Size:
    """The larger of a length and a bound, an integer if the length is one."""
    if isinstance(length, int):
        return max(length, bound)
    return ops.maximum(length, bound)
