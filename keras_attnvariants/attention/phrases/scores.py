"""The scores of phrase attention by token and by order of n-grams, and statistics."""

import functools
from collections.abc import Iterable

import numpy as np
from keras import ops

from keras_attnvariants.attention.banded import delay
from keras_attnvariants.attention.phrases.structures import Structure
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import Tensor


class PhraseScores:
    """Methods of a layer with phrases that read its scores.

    Attributes:
        num_heads: number of heads.
        structure: which heads attend to which n-grams.
    """

    num_heads: int
    structure: Structure

    @property
    def score_blocks(self) -> int:
        """The number of times that the last axis of the scores lists the keys."""
        groups = self.structure.groups(self.num_heads)
        return len(self.structure.query_orders) * len(groups[0].orders)

    def compute_scores_shape(self, query_shape: Shape, value_shape: Shape) -> Shape:
        keys = value_shape[1] and value_shape[1] * self.score_blocks
        return (query_shape[0], self.num_heads, query_shape[1], keys)

    def split_scores(self, scores: Tensor) -> Tensor:
        """Scores by query stream and order of n-grams.

        Args:
            scores: `[..., M * N * S]`, as `call` and `step` return them.

        Returns:
            `[..., M, N, S]`: `M` query streams (tokens, phrases), `N` orders. The
            position of an n-gram is that of its last token. For example,
            `[..., 0, 1, :]` holds the weights of token queries on phrases. For
            `Homogeneous`, whose heads have one order each, `M = N = 1`.
        """
        *lead, size = ops.shape(scores)
        streams = len(self.structure.query_orders)
        orders = self.score_blocks // streams
        return ops.reshape(scores, (*lead, streams, orders, size // self.score_blocks))

    def token_scores(self, scores: Tensor) -> Tensor:
        """The weight of each token; weights of n-grams are split evenly among tokens.

        Args:
            scores: `[B, H, T, M * N * S]`, as `call` returns them.

        Returns:
            `[B, H, T, S]`, averaged over query streams. Rows sum to 1, or to 0 if the
            query attends to nothing.
        """
        split = self.split_scores(scores)  # [B, H, T, M, N, S]
        parts, first = [], 0
        for group in self.structure.groups(self.num_heads):
            heads = split[:, first : first + group.num_heads]
            first += group.num_heads
            orders = enumerate(group.orders)
            tokens = sum(spread(heads[..., block, :], order) for block, order in orders)
            parts.append(ops.sum(tokens, axis=3))  # over the streams
        tokens = ops.concatenate(parts, axis=1)
        # At the first token, only one of two streams has a query.
        total = ops.sum(tokens, axis=-1, keepdims=True)
        return tokens / ops.where(total > 0, total, 1.0)

    def alignment(self, scores: Tensor) -> Tensor:
        tokens = self.token_scores(ops.transpose(scores, (0, 2, 1, 3)))
        return ops.mean(tokens, axis=1)


def mass_shares(batches: Iterable[Tensor]) -> np.ndarray:
    """The shares of the orders of n-grams in the weights of each query stream.

    The weights of a query sum to 1 over all n-grams, and so do the shares of a stream.

    Args:
        batches: results of `PhraseAttention.split_scores`, one for each batch,
            `[B, H, T, M, N, S]`: `M` query streams, `N` orders.

    Returns:
        Float64 `[M, N]`, whose rows sum to 1 (to 0 if nothing was attended to).
        For interleaved attention: token to token, token to phrase; phrase to token,
        phrase to phrase.

    Example:

    >>> scores = np.array([[0.1, 0.2], [0.3, 0.4]]).reshape(1, 1, 1, 1, 2, 2)
    >>> mass_shares([scores]).round(2)
    array([[0.3, 0.7]])
    """
    mass = add_up(by_quadrant(scores) for scores in batches)
    return shares(mass, mass.sum(-1, keepdims=True))


def strong_shares(batches: Iterable[Tensor], threshold: float = 0.5) -> np.ndarray:
    """The share of each quadrant in all weights of at least `threshold`.

    A quadrant is a pair of query stream and order. Nguyen and Joty (2018) report shares
    of "activations" that sum to 1 over the four quadrants but do not define them. This
    definition is a guess.

    Args:
        batches: as for `mass_shares`.
        threshold: the smallest weight that counts, above 0 and at most 1.

    Returns:
        Float64 `[M, N]`, which sums to 1 (to 0 if no weight is strong).

    Raises:
        ValueError: `threshold` is out of range.

    Example:

    >>> scores = np.array([[0.1, 0.2], [0.0, 0.7]]).reshape(1, 1, 1, 1, 2, 2)
    >>> strong_shares([scores])
    array([[0., 1.]])
    """
    if not 0 < threshold <= 1:
        raise ValueError(
            f"`threshold` must be above 0 and at most 1. Received: {threshold}"
        )
    count = add_up(
        by_quadrant(ops.convert_to_numpy(scores) >= threshold) for scores in batches
    )
    return shares(count, count.sum())


def winners(scores: Tensor) -> np.ndarray:
    """Float64 `[M, N]`: in how many rows of `[B, H, T, M, N, S]` each has the maximum.

    Rows without weights are not counted.
    """
    highest = ops.convert_to_numpy(scores).max(-1)  # [B, H, T, M, N]
    *_, streams, orders = highest.shape
    rows = highest.reshape(-1, streams * orders)
    chosen = rows.argmax(-1)[rows.max(-1) > 0]
    count = np.bincount(chosen, minlength=streams * orders)
    return count.reshape(streams, orders).astype("float64")


def by_quadrant(scores: Tensor) -> np.ndarray:
    """Float64 `[M, N]`, the sum of `[B, H, T, M, N, S]` over all other axes."""
    return ops.convert_to_numpy(scores).sum((0, 1, 2, 5), dtype="float64")


def add_up(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """The sum of arrays `[M, N]`; `[[0]]` if there are none."""
    return functools.reduce(np.add, arrays, np.zeros((1, 1)))


def shares(parts: np.ndarray, total: np.ndarray) -> np.ndarray:
    """`parts / total`, 0 where `total` is 0."""
    return np.divide(parts, total, out=np.zeros_like(parts), where=total > 0)


def by_position(weights: Tensor, streams: int) -> Tensor:
    """Rearranges the weights of `M` streams.

    From `[B, H, M * T, N * S]` to `[B, H, T, M * N * S]`.
    """
    batch, heads, rows, keys = ops.shape(weights)
    length = rows // streams
    weights = ops.reshape(weights, (batch, heads, streams, length, keys))
    weights = ops.transpose(weights, (0, 1, 3, 2, 4))
    return ops.reshape(weights, (batch, heads, length, streams * keys))


def spread(scores: Tensor, order: int) -> Tensor:
    """Splits the weights of n-grams `[..., S]` evenly among their tokens.

    Only existing tokens count in an n-gram that begins before the sentence.
    """
    length = ops.shape(scores)[-1]
    tokens = ops.minimum(ops.arange(length) + 1, order)
    parts = scores / ops.cast(tokens, scores.dtype)
    return sum(delay(parts, -distance, axis=-1) for distance in range(order))
