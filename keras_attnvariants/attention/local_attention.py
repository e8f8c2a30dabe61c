"""Learned attention to neighbours only, the local baseline of Loem et al. (2022).

Sequences are cut into blocks, and each block attends to itself and its borders. Time
and memory are linear in length.
"""

from dataclasses import replace
from typing import Any

from keras import ops

from keras_attnvariants.attention.banded import block_size
from keras_attnvariants.attention.banded import block_windows
from keras_attnvariants.attention.banded import join_blocks
from keras_attnvariants.attention.cache import RingCache
from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import combine_masks
from keras_attnvariants.attention.calls import mask_or_ones
from keras_attnvariants.attention.calls import window_pattern
from keras_attnvariants.attention.dot_product import DotProductAttention
from keras_attnvariants.attention.dot_product import positions
from keras_attnvariants.attention.registry import WIDTHS
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


@register_attention(
    paper="Loem et al. 2022",
    examples=(
        {"num_heads": 4},
        {"n": 2, "use_bias": True, **WIDTHS},
        {"num_heads": 4, "n": 1},
    ),
)
class LocalAttention(DotProductAttention):
    """Scaled dot-product attention to near positions (Loem et al. 2022, section 4).

    `softmax(Q K^T / sqrt(key_dim)) V`, over the positions `j` with `|i - j| < n`, or
    with `0 <= i - j < n` under a causal mask. `NeuralNgram` uses the same windows.

    Args:
        num_heads: number of heads `H`.
        n: number of positions that a query attends to on each side, itself included.
            For a window of `w` positions centred on `i`, with odd `w`, use
            `n = (w + 1) / 2`.
        key_dim, value_dim, dropout, use_bias, seed, initializers, regularizers and
            constraints: as in `DotProductAttention`.

    Time and memory are linear in length, except with an `attention_mask` or returned
    scores, which need the full matrix. In decoding, the state holds `n` keys and
    values, however long the output; `step` returns their scores in the order of
    `position % n`.

    Raises:
        ValueError: a size or rate is out of range, or query and value have different
            lengths.

    Example:

    >>> import numpy as np
    >>> layer = LocalAttention(num_heads=2, n=2)
    >>> x = np.ones((1, 4, 8), "float32")
    >>> _, scores = layer(x, x, return_attention_scores=True)
    >>> [round(float(w), 2) for w in scores[0, 0, 2]]
    [0.0, 0.33, 0.33, 0.33]
    """

    roles = frozenset({"encoder", "decoder"})
    is_linear = True
    cache_type = RingCache

    def __init__(self, num_heads: int, n: int = 5, **kwargs: Any) -> None:
        super().__init__(num_heads, **kwargs)
        self.n = check_integer("n", n)

    def energies(
        self,
        products: Tensor,
        query_positions: Tensor,
        key_positions: Tensor,
        mask: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        window = window_pattern(query_positions, key_positions, 1 - self.n, self.n - 1)
        return products, combine_masks(mask, window)

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        if call.masks.attention is not None:
            return super().attend(call)
        weights = None
        if call.return_scores:
            _, weights = super().attend(replace(call, training=False))
        return self.attend_blocks(call), weights

    def attend_blocks(self, call: Call) -> Tensor:
        """The context `[B, T, H, D]`, computed block by block."""
        q, k, v = self.project_inputs(call)
        masks = call.masks
        first, last = 1 - self.n, 0 if masks.causal else self.n - 1
        span = last - first
        batch, length = ops.shape(q)[:2]
        size = block_size(length, span)
        exists = mask_or_ones(masks.key, call.value)
        exists = block_windows(exists, first, span, size)
        count = ops.shape(exists)[1]

        def flat(x: Tensor) -> Tensor:  # [B, N, ...] to [B * N, ...]
            return ops.reshape(x, (batch * count, *ops.shape(x)[2:]))

        q = block_windows(q, 0, 0, size)
        k, v = (block_windows(x, first, span, size) for x in (k, v))
        mask = flat(exists)[:, None]
        if masks.causal:
            # Positions are relative to the start of a block: only distances matter.
            key_positions = positions(size + span) + first
            window = window_pattern(positions(size), key_positions, first, 0)
            mask = combine_masks(mask, window)
        context, _ = self.attend_heads(
            flat(q), flat(k), flat(v), mask, call.training, first
        )
        context = ops.reshape(context, (batch, count, *ops.shape(context)[1:]))
        return join_blocks(context, length)

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: Memory = None
    ) -> State:
        return super().initial_state(batch, beams, self.n)
