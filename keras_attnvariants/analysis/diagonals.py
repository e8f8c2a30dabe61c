"""How far from the diagonal sentences are attended to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from typing import ClassVar
from typing import NamedTuple

import numpy as np

from keras_attnvariants.analysis.heads import plain
from keras_attnvariants.analysis.streams import PLACES
from keras_attnvariants.analysis.streams import Batch
from keras_attnvariants.analysis.streams import Pairs
from keras_attnvariants.analysis.streams import Stream
from keras_attnvariants.analysis.streams import Sums
from keras_attnvariants.analysis.streams import encoded
from keras_attnvariants.analysis.tables import Panel
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.analysis.tables import head_panel
from keras_attnvariants.utils.checks import check_integer

# In tokens: a row is off the diagonal if it looks as far as this.
FAR = 2


class HeadDiagonality(NamedTuple):
    """How much of a sentence a head looks at from afar.

    Attributes:
        place, layer, head: the head; numbers from 1, layers from the bottom. `None`
            for all heads of a place.
        share: mean over sentences of the share of tokens with
            `abs(argmax_j a_ij - i) >= 2`.
        sentences: number of sentences.
    """

    place: str
    layer: int | None
    head: int | None
    share: float
    sentences: int


@dataclass(frozen=True)
class OffDiagonality(Table):
    """How much heads look at from afar: one row a head, one row a place."""

    title: ClassVar[str] = "Share of off-diagonal tokens"

    def panels(self) -> list[Panel]:
        heads = [
            (row.place, row.layer, row.head, row.share)
            for row in self.rows
            if row.head is not None
        ]
        return [head_panel(heads, self.title, "share of tokens")]


def off_diagonality(
    model: Any, tokenizer: Any, pairs: Pairs, far: int = FAR
) -> OffDiagonality:
    """The share of tokens that look `far` or farther (You et al. 2020, Fig. 6).

    The value of a sentence is its share of such tokens, and that of a place the mean
    over its heads and layers; the paper does not say how it averages. The paper looks
    at the self-attention of encoder and decoder only.

    Args:
        model, tokenizer, pairs: see `locality`.
        far: smallest distance, in tokens, that is off the diagonal.

    Returns:
        A row for every place, and one for every head.

    Raises:
        ValueError: see `locality`.
    """
    check_integer("far", far)
    stream, sums, counts = Stream(model, encoded(tokenizer, pairs)), Sums(), Sums()
    for batch in stream:
        for layer in batch.layers:
            shares, some = sentence_shares(layer.offsets, layer.rows, far)
            sums.add(layer, shares.sum(0))
            counts.add(layer, some.sum(0))
    heads = [
        HeadDiagonality(place, depth, head, share / count, int(count))
        for place, depth, shares in sums.in_order()
        for head, (share, count) in enumerate(
            zip(shares, counts[place, depth], strict=True), start=1
        )
        if count
    ]
    rows = []
    for place in PLACES:
        chosen = [row for row in heads if row.place == place]
        if chosen:
            mean = sum(row.share for row in chosen) / len(chosen)
            most = max(row.sentences for row in chosen)
            rows += [HeadDiagonality(place, None, None, mean, most), *chosen]
    return OffDiagonality(plain(rows), stream.sentences, stream.skipped)


def sentence_shares(
    offsets: np.ndarray, rows: np.ndarray, far: int
) -> tuple[np.ndarray, np.ndarray]:
    """The share of off-diagonal tokens of each sentence and head, and if it has any.

    Args:
        offsets, rows: of an `Attended`, `[B, H, T]`.
        far: smallest distance that counts.

    Returns:
        Float64 `[B, H]`, 0 where a head has no row with weights, and bool `[B, H]`.
    """
    counts = rows.sum(-1)
    found = (rows & (abs(offsets) >= far)).sum(-1)
    return found / np.maximum(counts, 1), counts > 0


def sentence_values(
    stream: Stream, far: int = FAR
) -> Iterator[tuple[Batch, dict[str, np.ndarray]]]:
    """The off-diagonality of sentences, a batch at a time.

    Yields:
        A batch, and for each place with weights the means over its heads and layers,
        `[B]`; NaN for a sentence without any.
    """
    for batch in stream:
        shares: dict[str, list[np.ndarray]] = {}
        for layer in batch.layers:
            found, some = sentence_shares(layer.offsets, layer.rows, far)
            shares.setdefault(layer.place, []).append(np.where(some, found, np.nan))
        yield batch, {place: mean(parts) for place, parts in shares.items()}


def mean(parts: list[np.ndarray]) -> np.ndarray:
    """Means over the heads of all layers, `[B]`, of arrays `[B, H]` with NaN."""
    whole = np.concatenate(parts, axis=1)
    known = ~np.isnan(whole)
    total = np.where(known, whole, 0.0).sum(1)
    count = known.sum(1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
