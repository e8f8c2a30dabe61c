"""Learned attention to neighbours only, the local baseline of Loem et al. (2022).

Sequences are cut into blocks, each of which attends to itself and its borders: time
and memory grow linearly with length.
"""

from typing import Any

from keras import ops

from keras_attnvariants.attention.banded import block_size
from keras_attnvariants.attention.banded import block_windows
from keras_attnvariants.attention.banded import join_blocks
from keras_attnvariants.attention.checks import check_positive
from keras_attnvariants.attention.dot_product import DotProductAttention
from keras_attnvariants.attention.masks import band_pattern
from keras_attnvariants.attention.masks import both
from keras_attnvariants.attention.registry import register_attention


@register_attention(
    paper="Loem et al. 2022",
    examples=(
        {"num_heads": 4},
        {"num_heads": 4, "n": 2, "key_dim": 3, "use_bias": True},
        {"num_heads": 4, "n": 1},
    ),
)
class LocalAttention(DotProductAttention):
    """Scaled dot-product attention to near positions (Loem et al. 2022, section 4).

    Position `i` attends to the positions `j` with `|i - j| < n`; under a causal mask to
    those with `0 <= i - j < n`. These are the positions that `NeuralNgram` sees.

    Args:
        num_heads: number of heads `H`.
        n: how far a position looks, in tokens, itself included. A window of `n`
            positions centred on `i`, for odd `n`, is that of `(n + 1) / 2`.
        key_dim, value_dim, dropout, use_bias, seed and initializers: as in
            `DotProductAttention`.

    Time and memory are linear in length. The exceptions are an `attention_mask` and
    returned scores, which are full matrices. In decoding the state holds `n` keys and
    values, however long the output; the scores of `step` list them by
    `position % n`.

    Raises:
        ValueError: a size or rate is out of range, or query and value differ in length.

    Example:

    >>> import numpy as np
    >>> layer = LocalAttention(num_heads=2, n=2)
    >>> x = np.ones((1, 4, 8), "float32")
    >>> _, scores = layer(x, x, return_attention_scores=True)
    >>> [round(float(w), 2) for w in scores[0, 0, 2]]
    [0.0, 0.33, 0.33, 0.33]
    """

    roles = frozenset({"encoder", "decoder"})

    def __init__(self, num_heads: int, n: int = 5, **kwargs: Any):
        super().__init__(num_heads, **kwargs)
        self.n = check_positive("n", n)

    def attend(self, query, value, key, masks, return_scores, training):
        q, k, v = self.project_inputs(query, value, key)
        if masks.attention is not None:
            return self.by_matrix(q, k, v, masks, training)
        weights = None
        if return_scores:
            weights = self.by_matrix(q, k, v, masks, training=False)[1]
        return self.by_blocks(q, k, v, masks, training), weights

    def reach(self, causal: bool) -> tuple[int, int]:
        """Relative positions of the first and the last key that a query sees."""
        return 1 - self.n, 0 if causal else self.n - 1

    def by_matrix(self, q, k, v, masks, training):
        """Context and weights by way of the full matrix."""
        length = ops.shape(q)[1]
        pattern = band_pattern(length, length, *self.reach(masks.causal))[None]
        mask = both(masks.combined(length, length), pattern)
        return self.dot_product(q, k, v, mask, training)

    def by_blocks(self, q, k, v, masks, training):
        """The context `[B, T, H, D]`, each block an attention of its own."""
        first, last = self.reach(masks.causal)
        span = last - first
        batch, length = ops.shape(q)[:2]
        size = block_size(length, span)
        exists = ops.ones((batch, length), "bool") if masks.key is None else masks.key
        exists = block_windows(ops.cast(exists, "bool"), first, span, size)
        count = ops.shape(exists)[1]

        def flat(x):  # [B, N, ...] to [B * N, ...]
            return ops.reshape(x, (batch * count, *ops.shape(x)[2:]))

        q = block_windows(q, 0, 0, size)
        k, v = (block_windows(x, first, span, size) for x in (k, v))
        near = band_pattern(size, size + span, 0, span)
        mask = ops.logical_and(flat(exists)[:, None], near)
        context, _ = self.dot_product(flat(q), flat(k), flat(v), mask, training)
        context = ops.reshape(context, (batch, count, *ops.shape(context)[1:]))
        return join_blocks(context, length)

    def prepare(self, value, value_mask=None):
        raise NotImplementedError("LocalAttention cannot do cross-attention.")

    def initial_state(self, batch, beams, max_length, memory=None):
        return super().initial_state(batch, beams, self.n)

    def extend(self, state, query, position):
        # A ring: the newest key takes the place of the one that is out of reach.
        return super().extend(state, query, position % self.n)

    def get_config(self):
        return {**super().get_config(), "n": self.n}
