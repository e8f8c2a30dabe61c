"""Where the heads of a layer look, and how cheap a layer that allows."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_attnvariants.analysis.heads import NEAREST
from keras_attnvariants.analysis.heads import HeadLocality

# From cheapest to most expensive: what a layer gets, and what no layer of a hybrid is
# cheaper than.
HARD_CODED, NGRAM, LOCAL, LEARNED = RUNGS = ("hard-coded", "n-gram", "local", "learned")


# Share of the rows in which a head must keep to its offset to be hard-coded.
MOST = 0.5


class LayerLocality(NamedTuple):
    """Where the heads of a layer look.

    Attributes:
        near, wide: share of the weight within the distance, and within twice of it.
        even_near, even_wide: the same if all weights of a row were equal.
        offsets: the most frequent offset of each head, from -3 to 3.
        kept: the smallest, over the heads, share of rows whose largest weight is at
            most one token from that.
    """

    near: float
    wide: float
    even_near: float
    even_wide: float
    offsets: tuple[int, ...]
    kept: float

    def rung(self, place: str, nearness: float) -> str:
        """The cheapest that a layer may get.

        Args:
            place: `"encoder"`, `"decoder"` or `"cross"`.
            nearness: how near it must look, from 0 (even weights) to 1 (nothing
                beyond the distance).
        """
        is_near = beyond_even(self.near, self.even_near) >= nearness
        if is_near and self.kept >= MOST:
            return HARD_CODED
        if place == "cross":
            return LEARNED
        if is_near:
            return NGRAM
        is_wide = beyond_even(self.wide, self.even_wide) >= nearness
        return LOCAL if is_wide else LEARNED


def beyond_even(share: float, even: float) -> float:
    """Where a share is between that of even weights, 0, and everything, 1."""
    return (share - even) / (1 - even) if even < 1 else 0.0


def layer_locality(
    heads: Sequence[HeadLocality],
    weights: Mapping[int, float],
    even: tuple[float, float],
) -> LayerLocality:
    """Where a layer looks, from the tables of `kav.analysis`.

    Args:
        heads: its heads.
        weights: its weight by distance, up to twice of what counts as near.
        even: shares of even weights within the distance, and within twice of it.
    """
    distance = max(weights) // 2
    shares = [dict(zip(NEAREST, head.shares, strict=True)) for head in heads]
    offsets = tuple(max(found, key=found.__getitem__) for found in shares)
    kept = [
        sum(found.get(offset + step, 0.0) for step in (-1, 0, 1))
        for offset, found in zip(offsets, shares, strict=True)
    ]
    near = sum(weight for far, weight in weights.items() if abs(far) <= distance)
    wide = sum(weights.values())
    return LayerLocality(near, wide, even[0], even[1], offsets, min(kept))


def even_share(place: str, lengths: Iterable[tuple[int, int]], distance: int) -> float:
    """Share of the weight within a distance if all weights of a row are equal.

    Args:
        place: `"encoder"`, `"decoder"` or `"cross"`.
        lengths: of sources and targets, in tokens; a target has BOS before it.
        distance: in tokens.
    """
    near = rows = 0.0
    for source, target in lengths:
        queries = source if place == "encoder" else target + 1
        keys = target + 1 if place == "decoder" else source
        offsets = np.arange(keys) - np.arange(queries)[:, None]
        seen = offsets <= 0 if place == "decoder" else np.full(offsets.shape, True)
        within = (abs(offsets) <= distance) & seen
        near += (within.sum(-1) / seen.sum(-1)).sum()
        rows += queries
    return near / rows
