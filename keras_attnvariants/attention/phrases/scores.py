"""The scores of phrase attention by token and by order of n-grams."""

from keras import ops

from keras_attnvariants.attention.banded import delay
from keras_attnvariants.attention.phrases.structures import Structure
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import Tensor


class PhraseScores:
    """Mixin that interprets the scores of phrase attention.

    Attributes:
        num_heads: number of heads.
        structure: which heads attend to which n-grams.
        score_blocks: how often the last axis of the scores lists the keys.
    """

    num_heads: int
    structure: Structure
    score_blocks: int

    def compute_scores_shape(self, query_shape: Shape, value_shape: Shape) -> Shape:
        keys = value_shape[1] and value_shape[1] * self.score_blocks
        return (query_shape[0], self.num_heads, query_shape[1], keys)

    def split_scores(self, scores: Tensor) -> Tensor:
        """Scores by query stream and order of n-grams.

        Args:
            scores: `[..., M * N * S]`, as `call` and `step` return them.

        Returns:
            `[..., M, N, S]`: `M` query streams (tokens, phrases), `N` orders. An
            n-gram has the position of its last token. For example,
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


def by_position(weights: Tensor, streams: int) -> Tensor:
    """Rearranges the weights of `M` streams.

    From `[B, H, M * T, N * S]` to `[B, H, T, M * N * S]`.
    """
    return ops.concatenate(ops.split(weights, streams, axis=2), axis=-1)


def spread(scores: Tensor, order: int) -> Tensor:
    """Splits the weights of n-grams `[..., S]` evenly among their tokens.

    Only existing tokens count in an n-gram that begins before the sentence.
    """
    length = ops.shape(scores)[-1]
    tokens = ops.minimum(ops.arange(length) + 1, order)
    parts = scores / ops.cast(tokens, scores.dtype)
    return sum(delay(parts, -distance, axis=-1) for distance in range(order))
