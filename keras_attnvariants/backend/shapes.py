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


def sizes(x: Tensor) -> tuple[Size, ...]:
    """The sizes of a tensor, for `reshape`: the only unknown one is -1.

    In a TensorFlow graph, each size that `ops.shape` finds takes two operators.

    Args:
        x: any tensor.
    """
    known = tuple(x.shape)
    others = [size for size in known if size is not None]
    if len(others) == len(known) - 1 and min(others, default=1) > 0:
        return tuple(-1 if size is None else size for size in known)
    return tuple(ops.shape(x))


def of_any_rows(x: Tensor) -> Tensor:
    """The same tensor of a TensorFlow graph, as one with an unknown number of rows.

    A loop may then change the number.

    Args:
        x: any tensor; one without axes remains as it is.
    """
    import tensorflow as tf

    if not x.shape.rank or x.shape[0] is None:
        return x
    return tf.raw_ops.PlaceholderWithDefault(input=x, shape=[None, *x.shape[1:]])


def as_matrix(x: Tensor) -> Tensor:
    """`[..., D]` as `[N, D]`."""
    return x if len(x.shape) == 2 else ops.reshape(x, (-1, x.shape[-1]))


def with_lead_of(x: Tensor, matrix: Tensor) -> Tensor:
    """A matrix `[N, E]` as `[..., E]`, if `x` is `[..., D]` with `N` rows."""
    if len(x.shape) == 2:
        return matrix
    return reshape(matrix, (*sizes(x)[:-1], matrix.shape[-1]))


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
