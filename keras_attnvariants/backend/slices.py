"""Reading and writing at positions of a tensor, with few operators."""

import math

from keras import ops

from keras_attnvariants.backend.compilation import in_xla
from keras_attnvariants.backend.compilation import name
from keras_attnvariants.backend.shapes import reshape
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor

# TensorFlow copies a slice element by element: the larger the elements, the better.
WORD = "int64"


def take(x: Tensor, index: Tensor, axis: int = 0, batch_axes: int = 0) -> Tensor:
    """`ops.take` of positions that exist, counted from the start of the axis.

    On TensorFlow, `ops.take` also accepts negative ones, at six more operators.

    Args:
        x: any tensor.
        index: integers, at least 0 and below the size of `axis`.
        axis: not negative, and at least `batch_axes`.
        batch_axes: 1 if `x` and `index` begin with the same axis, and each entry of
            it is to be indexed on its own; else 0.

    Example:

    >>> x = ops.array([[1, 2, 3], [4, 5, 6]])
    >>> [int(value) for value in take(x, ops.array([2, 0]), axis=1, batch_axes=1)]
    [3, 4]
    """
    if name() == "tensorflow":
        import tensorflow as tf

        return tf.gather(x, index, axis=axis, batch_dims=batch_axes)
    if not batch_axes:
        return ops.take(x, index, axis=axis)
    pairs = x, index
    return ops.vectorized_map(lambda pair: ops.take(*pair, axis=axis - 1), pairs)


def section(x: Tensor, start: Size, size: Size, axis: int) -> Tensor:
    """`size` positions of an axis, the first of them at `start`.

    On TensorFlow, the gradient of `x[start : start + size]` takes ten times as long.

    Args:
        x: any tensor.
        start: at least 0.
        size: at most as many as there are from `start` on.
        axis: not negative.

    Example:

    >>> [int(value) for value in section(ops.array([1, 2, 3, 4]), 1, 2, axis=0)]
    [2, 3]
    """
    if name() == "tensorflow":
        import tensorflow as tf

        begin: list[Size] = [0] * len(x.shape)
        sizes: list[Size] = [-1] * len(x.shape)
        begin[axis], sizes[axis] = start, size
        found = tf.slice(x, begin, sizes)
        # TensorFlow forgets all sizes if one of them is a tensor.
        shape = x.shape.as_list()
        shape[axis] = size if isinstance(size, int) else None
        found.set_shape(shape)
        return found
    return x[(*[slice(None)] * axis, slice(start, start + size))]


def write_at(x: Tensor, new: Tensor, position: Tensor | int, axis: int) -> Tensor:
    """`x` with the slice that begins at a position of an axis replaced by `new`.

    In a loop that has no further use for the old `x`, the time this takes depends on
    the size of `new` only.

    Args:
        x: tensor of any dtype but bool; its sizes after `axis` are known.
        new: of the shape and dtype of `x`, but with fewer positions on `axis`.
        position: int32 scalar, such that all of `new` is within `x`.
        axis: not negative.

    Returns:
        A tensor of the shape and dtype of `x`.

    Example:

    >>> x = write_at(ops.zeros((2, 3)), ops.ones((2, 1)), 1, axis=1)
    >>> [float(value) for value in x[0]]
    [0.0, 1.0, 0.0]
    """
    if in_xla():
        start = [0] * len(x.shape)
        start[axis] = position
        return ops.slice_update(x, start, new)
    return tensorflow_write(x, new, position, axis)


def tensorflow_write(
    x: Tensor, new: Tensor, position: Tensor | int, axis: int
) -> Tensor:
    """`write_at` with an operator of TensorFlow that every server has."""
    import tensorflow as tf

    width = math.prod(x.shape[axis + 1 :])
    per_word = tf.as_dtype(WORD).size // x.dtype.size
    if width % per_word:
        per_word = 1

    def to_words(part: Tensor, positions: Size) -> Tensor:
        # [rows, words]
        size = positions * width // per_word
        if per_word == 1:
            return tf.reshape(part, (-1, size))
        return tf.bitcast(tf.reshape(part, (-1, size, per_word)), WORD)

    step = width // per_word
    written = tf.raw_ops.TensorStridedSliceUpdate(
        input=to_words(x, ops.shape(x)[axis]),
        begin=tf.stack([0, position * step]),
        end=tf.stack([0, (position + new.shape[axis]) * step]),
        strides=[1, 1],
        value=to_words(new, new.shape[axis]),
        begin_mask=1,
        end_mask=1,
    )
    if per_word > 1:
        written = tf.bitcast(written, x.dtype)
    return reshape(written, ops.shape(x))
