"""Products by head for the few queries of a decoding step, with few operators."""

import numpy as np
from keras import ops

from keras_attnvariants.backend.compilation import in_xla
from keras_attnvariants.backend.compilation import name
from keras_attnvariants.backend.shapes import reshape
from keras_attnvariants.backend.shapes import sizes
from keras_attnvariants.backend.slices import take
from keras_attnvariants.utils.typing import Tensor


def row_products(x: Tensor, y: Tensor) -> Tensor:
    """The products of rows: `[..., T, D]` and `[..., S, D]` to `[..., T, S]`.

    Args:
        x, y: of one dtype, and of equal sizes before `T` and `S`.

    Example:

    >>> row_products(ops.array([[1, 2]]), ops.array([[3, 4], [5, 6]])).numpy().tolist()
    [[11, 17]]
    """
    if name() == "tensorflow":
        import tensorflow as tf

        return tf.matmul(x, y, transpose_b=True)
    return ops.matmul(x, ops.swapaxes(y, -1, -2))


def swap_rows(x: Tensor) -> Tensor:
    """`[B, M, N, D]` to `[B, N, M, D]`.

    TensorFlow copies a few whole rows faster than it transposes them.
    """
    if None in x.shape[1:]:
        return ops.transpose(x, (0, 2, 1, 3))
    [swapped] = swap_parts(x, 1)
    return swapped


def swap_parts(x: Tensor, count: int) -> list[Tensor]:
    """`[B, M, P * N, D]` to `P` parts `[B, N, M, D]`; all sizes but `B` are known.

    Args:
        x: any tensor of four axes.
        count: the number `P`.
    """
    if in_xla():
        parts = ops.split(x, count, axis=2)
        return [ops.transpose(part, (0, 2, 1, 3)) for part in parts]
    batch, first, second, width = sizes(x)
    rows = reshape(x, (batch, first * second, width))
    places = np.arange(first * second, dtype="int32").reshape(first, count, -1)
    shape = batch, second // count, first, width
    return [
        reshape(take(rows, part.T.reshape(-1), axis=1), shape)
        for part in places.swapaxes(0, 1)
    ]
