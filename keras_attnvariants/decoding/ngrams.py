"""N-grams of tokens that a hypothesis must not contain twice."""

from typing import Any

import numpy as np
from keras import ops

from keras_attnvariants.decoding.per_sentence import with_rank
from keras_attnvariants.utils.typing import Tensor

# The longest n-grams that a tensor can ask for: its values are not known in a graph.
LONGEST = 8


def repeating_tokens(
    ids: Tensor, position: Tensor, size: Any, longest: int, pad_id: int
) -> Tensor:
    """The tokens that would make an n-gram occur for a second time.

    They are the tokens of the hypothesis that follow on the same `n - 1` tokens as its
    last ones.

    Args:
        ids: int32 `[B, K, T]`, of which the first `position` are tokens.
        position: int32 scalar.
        size: `n`, an integer or int32 `[B]`; 0 for no limit.
        longest: the largest `n`.
        pad_id: stands for no token.

    Returns:
        int32 `[B, K, T]`, with PAD in all other places.
    """
    places = ops.arange(ops.shape(ids)[-1], dtype="int32")
    back = np.arange(1, max(longest, 2), dtype="int32")  # [J]
    index = ops.maximum(places[:, None] - back, 0)
    before = ops.take(ids, index, axis=-1)  # [B, K, T, J]
    last = ops.take(ids, ops.maximum(position - back, 0), axis=-1)  # [B, K, J]
    is_same = ops.equal(before, last[:, :, None])
    is_same = ops.logical_or(is_same, ops.greater_equal(back, with_rank(size, 4)))
    size = with_rank(size, 3)
    is_complete = ops.logical_and(
        ops.less(places, position), ops.greater(places, size - 2)
    )
    is_complete = ops.logical_and(is_complete, ops.greater(size, 0))
    repeats = ops.logical_and(ops.all(is_same, axis=-1), is_complete)
    return ops.where(repeats, ids, pad_id)


def which_words(tokens: Tensor, vocabulary_size: int) -> Tensor:
    """Which words of the vocabulary are among the tokens of a row.

    Args:
        tokens: int32 `[N, M]`.
        vocabulary_size: `V`.

    Returns:
        bool `[N, V]`.
    """
    rows, count = ops.shape(tokens)
    row = ops.broadcast_to(ops.arange(rows, dtype="int32")[:, None], (rows, count))
    index = ops.reshape(ops.stack([row, tokens], axis=-1), (rows * count, 2))
    none = ops.zeros((rows, vocabulary_size), dtype="bool")
    return ops.scatter_update(none, index, ops.ones((rows * count,), dtype="bool"))
