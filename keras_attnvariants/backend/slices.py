"""Writing to one position of a tensor, in place where the backend can."""

import math

from keras import ops

from keras_attnvariants.backend.compilation import in_xla
from keras_attnvariants.utils.typing import Tensor

# TensorFlow copies a slice element by element: the larger the elements, the better.
WORD = "int64"


def write_at(x: Tensor, new: Tensor, position: Tensor | int, axis: int) -> Tensor:
    """`x` with the slice at one position of an axis replaced by `new`.

    In a loop that has no further use for the old `x`, the time this takes depends on
    the size of `new` only.

    Args:
        x: tensor of any dtype but bool; its sizes from `axis` on are known.
        new: of the shape and dtype of `x`, but with 1 position on `axis`.
        position: int32 scalar, at least 0 and below the size of `axis`.
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

    def to_words(part: Tensor, positions: int) -> Tensor:
        # [rows, words]
        size = positions * width // per_word
        if per_word == 1:
            return tf.reshape(part, (-1, size))
        return tf.bitcast(tf.reshape(part, (-1, size, per_word)), WORD)

    step = width // per_word
    written = tf.raw_ops.TensorStridedSliceUpdate(
        input=to_words(x, x.shape[axis]),
        begin=tf.stack([0, position * step]),
        end=tf.stack([0, (position + 1) * step]),
        strides=[1, 1],
        value=to_words(new, 1),
        begin_mask=1,
        end_mask=1,
    )
    if per_word > 1:
        written = tf.bitcast(written, x.dtype)
    return tf.reshape(written, ops.shape(x))
