"""Shapes and lengths whose sizes are Python integers or scalar tensors.

`keras.ops.shape` gives integers for static axes and, in a TensorFlow graph, tensors for
dynamic ones. Static lengths have to remain integers: JAX and XLA cannot use tensors as
shapes.
"""

from collections.abc import Sequence

from keras import ops

from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor


def reshape(x: Tensor, shape: Sequence[Size]) -> Tensor:
    """`ops.reshape` that leaves the only unknown size to be inferred.

    A TensorFlow graph then needs no operators that compute the shape.

    Args:
        x: any tensor.
        shape: sizes as `ops.shape` returns them, integers or scalar tensors.
    """
    static = [size for size in shape if isinstance(size, int)]
    if len(static) == len(shape) - 1 and min(static, default=1) > 0:
        shape = [size if isinstance(size, int) else -1 for size in shape]
    return ops.reshape(x, shape)


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
