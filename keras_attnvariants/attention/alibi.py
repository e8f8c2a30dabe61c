"""Attention with linear biases, ALiBi (Press, Smith and Lewis 2022)."""

import math
from typing import Any

import numpy as np
from keras import ops

from keras_attnvariants.attention.dot_product import DotProductAttention
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.utils.typing import Tensor


@register_attention(
    paper="Press, Smith and Lewis 2022",
    examples=(
        {"num_heads": 4},
        {"num_heads": 4, "key_dim": 3, "value_dim": 5, "use_bias": True},
    ),
)
class AlibiAttention(DotProductAttention):
    """Dot-product attention with linear distance biases (Press et al. 2022, section 3).

    `softmax(Q K^T / sqrt(key_dim) - m_h |i - j|) V` for head `h`, query `i` and key
    `j`, with a fixed slope `m_h` for each head. The paper has only decoders, where
    `j <= i`; here, encoders use the same bias on both sides. The model needs no
    position embeddings.

    Args:
        num_heads: number of heads `H`. The slopes are `2^(-8 h / H)` for
            `h = 1 … H`. If `H` is not a power of two, they are those of the next lower
            power and, for the remaining heads, every other one of the next higher
            power, as in the released code.
        key_dim, value_dim, dropout, use_bias, seed, initializers, regularizers and
            constraints: as in `DotProductAttention`.

    Raises:
        ValueError: as in `DotProductAttention`, or query and value have different
            lengths.

    Example:

    >>> AlibiAttention(num_heads=4).slopes
    (0.25, 0.0625, 0.015625, 0.00390625)
    """

    roles = frozenset({"encoder", "decoder"})

    def __init__(self, num_heads: int, **kwargs: Any) -> None:
        super().__init__(num_heads, **kwargs)
        self.slopes = slopes(num_heads)

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        distance = ops.abs(key_positions[None, :] - query_positions[:, None])
        slope = np.array(self.slopes, "float32")[:, None, None]
        return -slope * ops.cast(distance, "float32")


def slopes(num_heads: int) -> tuple[float, ...]:
    """The slope of each head, steepest first if `num_heads` is a power of two."""
    power = 2 ** int(math.log2(num_heads))
    exact = [2.0 ** (-8 * (head + 1) / power) for head in range(power)]
    between = [2.0 ** (-4 * (head + 1) / power) for head in range(0, 2 * power, 2)]
    return (*exact, *between[: num_heads - power])
