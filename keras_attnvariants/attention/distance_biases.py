"""Dot-product attention with biases by distance: ALiBi and relative biases."""

import math
from typing import Any

import numpy as np
from keras import ops

from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.dot_product import DotProductAttention
from keras_attnvariants.attention.registry import PLAIN_EXAMPLES
from keras_attnvariants.attention.registry import WIDTHS
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.backend import Embedding
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Tensor


@register_attention(paper="Press, Smith and Lewis 2022", examples=PLAIN_EXAMPLES)
class AlibiAttention(DotProductAttention):
    """Dot-product attention with linear distance biases (Press et al. 2022, section 3).

    `softmax(Q K^T / sqrt(key_dim) - m_h |i - j|) V` for head `h`, query `i` and key
    `j`, with a fixed slope `m_h` for each head. The paper has only decoders, where
    `j <= i`; here, encoders use the same bias on both sides. The model needs no
    position embeddings.

    Args:
        num_heads: number of heads `H`. The slopes are `2^(-8 h / H)` for
            `h = 1 … H`. If `H` is not a power of two, the first heads have the slopes
            of the next lower power, and the others every other slope of the next higher
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


FEW_BUCKETS = {"num_buckets": 6, "max_distance": 7, "bidirectional": False}


@register_attention(
    paper="Raffel et al. 2020",
    examples=({"num_heads": 4}, {**FEW_BUCKETS, **WIDTHS, "use_bias": True}),
)
class RelativeBiasAttention(DotProductAttention):
    """Dot-product attention with a learned bias for each distance (Raffel et al. 2020).

    `softmax(Q K^T / sqrt(key_dim) + b[h, bucket(j - i)]) V` for head `h`, query `i`
    and key `j`, with a learned table `b` (section 2.1 of the paper). Each short
    distance has its own bucket; longer distances share buckets of logarithmically
    growing size. T5 shares one table between all layers and does not scale the
    products. Here each layer has its own table, and products are scaled.

    Args:
        num_heads: number of heads `H`.
        num_buckets: number of buckets. With `bidirectional`, half of them are for
            keys after the query.
        max_distance: distance, in tokens, beyond which all distances share the last
            bucket.
        bidirectional: whether keys after the query have their own buckets, as in
            encoders; otherwise the layer can only be used in decoders.
        key_dim, value_dim, dropout, use_bias, seed, initializers, regularizers and
            constraints: as in `DotProductAttention`. The table uses
            `kernel_initializer`.

    Raises:
        ValueError: as in `DotProductAttention`; a size is out of range; or query and
            value have different lengths.

    Example:

    >>> layer = RelativeBiasAttention(num_heads=2, num_buckets=8, max_distance=16)
    >>> layer.buckets(np.array([-20, -3, -2, -1, 0, 1, 2, 3, 20])).tolist()
    [3, 2, 2, 1, 0, 5, 6, 6, 7]
    """

    roles = frozenset({"encoder", "decoder"})

    def __init__(
        self,
        num_heads: int,
        num_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, **kwargs)
        self.num_buckets = check_integer(
            "num_buckets", num_buckets, minimum=4 if bidirectional else 2
        )
        self.max_distance = check_integer("max_distance", max_distance)
        self.bidirectional = bidirectional
        if bidirectional and num_buckets % 2:
            raise ValueError(
                "`num_buckets` must be even if `bidirectional` is True. "
                f"Received: {num_buckets}"
            )
        # Of the buckets for one direction, half are for one distance each.
        self.side_buckets = num_buckets // 2 if bidirectional else num_buckets
        self.near_buckets = self.side_buckets // 2
        if max_distance <= self.near_buckets:
            raise ValueError(
                f"`max_distance` must exceed the {self.near_buckets} distances that "
                f"have a bucket each. Received: {max_distance}"
            )
        if not bidirectional:
            self.roles = frozenset({"decoder"})

    def make_layers(self, widths: Widths) -> None:
        super().make_layers(widths)
        self.bias_embedding = Embedding(
            self.num_buckets,
            self.num_heads,
            embeddings_initializer=self.kernel_initializer.clone(),
            embeddings_regularizer=self.kernel_regularizer,
            embeddings_constraint=self.kernel_constraint,
            dtype=self.dtype_policy,
            name="relative_bias",
        )
        self.bias_embedding.build()

    def buckets(self, distances: np.ndarray) -> np.ndarray:
        """The bucket of each relative position `j - i`."""
        near, side = self.near_buckets, self.side_buckets
        after = (distances > 0) * side * self.bidirectional
        if self.bidirectional:
            distances = -np.abs(distances)
        distances = np.maximum(-distances, 0)
        growth = np.log(np.maximum(distances, near) / near)
        growth = growth / math.log(self.max_distance / near)
        far = np.minimum(near + (growth * (side - near)).astype("int32"), side - 1)
        return np.where(distances < near, distances, far) + after

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        # Distances beyond `max_distance` share the bucket of that distance.
        limit = self.max_distance
        buckets = self.buckets(np.arange(-limit, limit + 1))
        table = ops.cast(self.bias_embedding(buckets), "float32")  # [2 limit + 1, H]
        distance = key_positions[None, :] - query_positions[:, None]
        distance = ops.clip(distance, -limit, limit) + limit
        return ops.transpose(ops.take(table, distance, axis=0), (2, 0, 1))
