"""Sizes, slices and axis orders of tensors, with few operators.

Sizes are Python integers or scalar tensors: `keras.ops.shape` gives integers for static
axes and, in a TensorFlow graph, tensors for dynamic axes. Static lengths must remain
integers: JAX and XLA cannot use tensors as shapes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import keras
import numpy as np
from keras import ops

from keras_attnvariants.backend.compilation import in_xla
from keras_attnvariants.backend.compilation import name
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor


def reshape(x: Tensor, shape: Sequence[Size]) -> Tensor:
    """`ops.reshape` that infers the size if only one is unknown.

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
    """The sizes of a tensor for `reshape`; if only one is unknown, it is -1.

    In a TensorFlow graph, each unknown size that `ops.shape` finds takes two operators.

    Args:
        x: any tensor.
    """
    known = tuple(x.shape)
    others = [size for size in known if size is not None]
    if len(others) == len(known) - 1 and min(others, default=1) > 0:
        return tuple(-1 if size is None else size for size in known)
    return tuple(ops.shape(x))


def with_unknown_rows(x: Tensor) -> Tensor:
    """A tensor of a TensorFlow graph whose number of rows counts as unknown.

    A loop may then change the number.

    Args:
        x: any tensor; a scalar is returned as it is.
    """
    import tensorflow as tf

    if not x.shape.rank or x.shape[0] is None:
        return x
    return tf.raw_ops.PlaceholderWithDefault(input=x, shape=[None, *x.shape[1:]])


def with_unknown_value(size: Size) -> Tensor:
    """A size as a tensor, whose value a TensorFlow graph does not know as it is built.

    A loop may then change shapes that start from it.

    Args:
        size: an integer, or a scalar tensor, which is returned as it is.
    """
    import tensorflow as tf

    if not isinstance(size, int):
        return size
    return tf.raw_ops.PlaceholderWithDefault(input=size, shape=[])


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


def take(x: Tensor, index: Tensor, axis: int = 0, batch_axes: int = 0) -> Tensor:
    """`ops.take` for indices that are not negative and within the axis.

    On TensorFlow, `ops.take` also accepts negative indices, at six more operators.

    Args:
        x: any tensor.
        index: integers, at least 0 and below the size of `axis`.
        axis: not negative, and at least `batch_axes`.
        batch_axes: 1 if `x` and `index` begin with the same axis and each of its
            entries is indexed separately; else 0.

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
        size: at most the number of positions from `start` on.
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
    """`x`, in which `new` replaces the slice that begins at a position of an axis.

    In a loop that does not use the old `x` again, the time depends only on the size of
    `new`.

    Args:
        x: tensor of any dtype but bool.
        new: a tensor of the shape and dtype of `x`, but with a known, smaller number of
            positions on `axis`.
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
    import tensorflow as tf

    # An operator that every server has. It writes all positions of the previous axes.
    before = [0] * axis
    begin = tf.stack([*before, position])
    all_of_them = 2**axis - 1
    written = tf.raw_ops.TensorStridedSliceUpdate(
        input=x,
        begin=begin,
        end=begin + [*before, new.shape[axis]],
        strides=[1] * (axis + 1),
        value=new,
        begin_mask=all_of_them,
        end_mask=all_of_them,
    )
    written.set_shape(x.shape)
    return written


# The dtype that TensorFlow copies instead of smaller elements, see `VectorLists`.
WORD = "int64"


@dataclass(frozen=True)
class VectorLists:
    """Lists of vectors in one tensor, into which a loop writes some vectors at a time.

    TensorFlow copies a slice element by element, so larger elements are faster. There,
    lists are stored as words of 64 bits, unless XLA compiles the loop.

    Attributes:
        width: width `D` of a vector.
        dtype: dtype of a vector.

    Example:

    >>> vectors = VectorLists(width=2, dtype="float32")
    >>> lists = vectors.zeros((1,), length=3)
    >>> lists = vectors.write(lists, ops.ones((1, 1, 2)), position=1)
    >>> [float(vector[0]) for vector in vectors.read(lists, length=3)[0]]
    [0.0, 1.0, 0.0]
    """

    width: int
    dtype: str

    def zeros(self, lead: Sequence[Size], length: Size) -> Tensor:
        """Lists `[*lead, length]` of vectors of zeros.

        At most one of the sizes before the length may be unknown.
        """
        if in_xla() or self.per_word == 1:
            return ops.zeros((*lead, length, self.width), self.dtype)
        return ops.zeros((*lead, length * (self.width // self.per_word)), WORD)

    def write(self, lists: Tensor, new: Tensor, position: Size) -> Tensor:
        """`lists`, in which `new` replaces the vectors from a position on.

        In a loop that does not use the old lists again, the time depends only on the
        size of `new`.

        Args:
            lists: `[*lead, length]` vectors, returned by a method of this class.
            new: `[*lead, n, D]`.
            position: int32 scalar, such that all of `new` is within the lists.
        """
        axis = len(new.shape) - 2
        if not is_words(lists):
            return write_at(lists, new, position, axis)
        import tensorflow as tf

        *lead, count, _ = sizes(new)
        words = self.width // self.per_word
        new = reshape(new, (*lead, count * words, self.per_word))
        return write_at(lists, tf.bitcast(new, WORD), position * words, axis)

    def read(self, lists: Tensor, length: Size) -> Tensor:
        """All vectors, `[*lead, length, D]`.

        Args:
            lists: returned by a method of this class.
            length: the length with which they were created.
        """
        if not is_words(lists):
            return lists
        import tensorflow as tf

        lead = [-1 if size is None else size for size in lists.shape[:-1]]
        vectors = tf.bitcast(lists, self.dtype)
        return ops.reshape(vectors, (*lead, length, self.width))

    @property
    def per_word(self) -> int:
        """The number of elements per word on TensorFlow; 1 if a vector has no words."""
        import tensorflow as tf

        count: int = tf.as_dtype(WORD).size // tf.as_dtype(self.dtype).size
        return 1 if self.width % count else count


def is_words(lists: Tensor) -> bool:
    """Whether lists of vectors are stored as words."""
    return bool(keras.backend.standardize_dtype(lists.dtype) == WORD)


def swap_rows(x: Tensor) -> Tensor:
    """`[B, M, N, D]` to `[B, N, M, D]`.

    TensorFlow copies a few whole rows faster than it transposes.
    """
    if in_xla() or None in x.shape[1:]:
        return ops.transpose(x, (0, 2, 1, 3))
    batch, first, second, width = sizes(x)
    rows = reshape(x, (batch, first * second, width))
    places = np.arange(first * second, dtype="int32").reshape(first, second)
    return reshape(take(rows, places.T.ravel(), axis=1), (batch, second, first, width))
