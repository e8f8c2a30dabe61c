"""Where the heads of a layer look, and how cheap a layer that allows."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from keras_attnvariants.analysis.heads import NEAREST
from keras_attnvariants.analysis.heads import HeadLocality

# From cheap to dear: what a layer gets, and what no layer of a hybrid is cheaper than.
HARD_CODED, NGRAM, LOCAL, LEARNED = RUNGS = ("hard-coded", "n-gram", "local", "learned")


class Look(NamedTuple):
    """Where the heads of a layer look.

    Attributes:
        near, wide: share of the weight within the distance, and within twice of it.
        farthest: the largest, over the heads, mean distance of the largest weight.
        offsets: the most frequent offset of each head, from -3 to 3.
        kept: the smallest, over the heads, share of rows whose largest weight is at
            most one token from that.
    """

    near: float
    wide: float
    farthest: float
    offsets: tuple[int, ...]
    kept: float

    def rung(self, place: str, distance: int, share: float) -> str:
        """The cheapest that a layer may get.

        Args:
            place: `"encoder"`, `"decoder"` or `"cross"`.
            distance: what counts as near, in tokens.
            share: of the weight that must be near.
        """
        is_near = self.near >= share and self.farthest <= distance
        if is_near and self.kept >= share:
            return HARD_CODED
        if place == "cross":
            return LEARNED
        if is_near:
            return NGRAM
        is_wide = self.wide >= share and self.farthest <= 2 * distance
        return LOCAL if is_wide else LEARNED


def look(heads: Sequence[HeadLocality], weights: Mapping[int, float]) -> Look:
    """Where a layer looks, from the tables of `kav.analysis`.

    Args:
        heads: its heads.
        weights: its weight by distance, up to twice of what counts as near.
    """
    distance = max(weights) // 2
    shares = [dict(zip(NEAREST, head[5:12], strict=True)) for head in heads]
    offsets = tuple(max(found, key=found.__getitem__) for found in shares)
    kept = [
        sum(found.get(offset + step, 0.0) for step in (-1, 0, 1))
        for offset, found in zip(offsets, shares, strict=True)
    ]
    return Look(
        near=sum(w for d, w in weights.items() if abs(d) <= distance),
        wide=sum(weights.values()),
        farthest=max(head.distance for head in heads),
        offsets=offsets,
        kept=min(kept),
    )
