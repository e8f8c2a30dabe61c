"""Where heads look: how near, how far from the diagonal, how sharply."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from typing import ClassVar
from typing import NamedTuple

import numpy as np

from keras_attnvariants.analysis.streams import Attended
from keras_attnvariants.analysis.streams import Pairs
from keras_attnvariants.analysis.streams import Stream
from keras_attnvariants.analysis.streams import Sums
from keras_attnvariants.analysis.streams import encoded
from keras_attnvariants.analysis.tables import Panel
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.analysis.tables import Value
from keras_attnvariants.analysis.tables import grouped
from keras_attnvariants.analysis.tables import head_panel
from keras_attnvariants.utils.checks import check_integer

NEAREST = range(-3, 4)


class HeadLocality(NamedTuple):
    """How near a head looks, in tokens.

    Attributes:
        place, layer, head: the head; numbers from 1, layers from the bottom.
        distance: mean of `abs(argmax_j a_ij - i)`.
        signed: mean of `argmax_j a_ij - i`: negative to the left.
        offset_m3, …, offset_p3: share of each offset from -3 to +3.
        tokens: number of rows with weights.
    """

    place: str
    layer: int
    head: int
    distance: float
    signed: float
    offset_m3: float
    offset_m2: float
    offset_m1: float
    offset_0: float
    offset_p1: float
    offset_p2: float
    offset_p3: float
    tokens: int

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of each offset in `NEAREST`."""
        return (
            *(self.offset_m3, self.offset_m2, self.offset_m1),
            self.offset_0,
            *(self.offset_p1, self.offset_p2, self.offset_p3),
        )


@dataclass(frozen=True)
class Locality(Table):
    """How near heads look: one row a head."""

    title: ClassVar[str] = "Distance of the largest weight, in tokens"

    def panels(self) -> list[Panel]:
        heads = [(row.place, row.layer, row.head, row.distance) for row in self.rows]
        return [head_panel(heads, self.title, "mean distance (tokens)")]


def locality(model: Any, tokenizer: Any, pairs: Pairs) -> Locality:
    """How near each head looks (You et al. 2020, Fig. 2).

    The offset of a row is the position of its largest weight, the first of equal ones,
    minus the position of its query. In cross-attention, both are counted from the
    start of their sentences. Position 0 of the target is BOS, from which its first
    token is predicted. Rows without weights are not counted.

    Args:
        model: with a method `attention_scores`, such as a `Transformer`.
        tokenizer: its tokenizer.
        pairs: sentences and their translations, read once.

    Returns:
        A row for every head that has weights.

    Raises:
        ValueError: nothing can be analysed, or no layer has weights.
    """
    stream, sums = Stream(model, encoded(tokenizer, pairs)), Sums()
    for batch in stream:
        for layer in batch.layers:
            offsets = layer.offsets
            found = [abs(offsets), offsets, *(offsets == n for n in NEAREST)]
            sums.add(layer, per_head(layer, *found))
    rows = [
        HeadLocality._make(
            (place, depth, head, *(values[1:] / values[0]), int(values[0]))
        )
        for place, depth, heads in sums.in_order()
        for head, values in enumerate(heads, start=1)
        if values[0]
    ]
    return Locality(plain(rows), stream.sentences, stream.skipped)


class DistanceWeight(NamedTuple):
    """How much weight a layer puts on one distance.

    Attributes:
        place, layer: the layer; numbers from 1, from the bottom.
        distance: position of the key minus that of the query.
        weight: the sum of the weights there, over the number of rows: a mean over
            heads.
    """

    place: str
    layer: int
    distance: int
    weight: float


@dataclass(frozen=True)
class WeightByDistance(Table):
    """How the weights of layers are distributed over distances."""

    title: ClassVar[str] = "Weight by distance"

    def panels(self) -> list[Panel]:
        return [
            Panel(
                place,
                "lines",
                {
                    f"layer {layer}": [Value(row.distance, row.weight) for row in own]
                    for layer, own in grouped(rows, "layer").items()
                },
                "distance (tokens)",
                "weight",
            )
            for place, rows in grouped(self.rows, "place").items()
        ]


def weight_by_distance(
    model: Any, tokenizer: Any, pairs: Pairs, farthest: int = 10
) -> WeightByDistance:
    """How the weights of each layer are distributed over `j - i` (Loem et al., Fig. 1).

    Arguments and errors as for `locality`.

    Args:
        model, tokenizer, pairs: see `locality`.
        farthest: the largest distance that has a row, to both sides.

    Returns:
        A row for each layer and distance. Over all distances the weights of a layer
        sum to 1 if its rows do.
    """
    check_integer("farthest", farthest)
    distances = range(-farthest, farthest + 1)
    stream, sums, counts = Stream(model, encoded(tokenizer, pairs)), Sums(), Sums()
    for batch in stream:
        for layer in batch.layers:
            heads = layer.weights.shape[1]
            # In [B, H, T, S], a distance is a diagonal.
            parts = [
                np.diagonal(layer.weights, distance, 2, 3).sum(dtype="float64")
                for distance in distances
            ]
            sums.add(layer, np.array(parts))
            counts.add(layer, np.array(heads * layer.real.sum()))
    rows = [
        DistanceWeight(place, depth, distance, weight)
        for place, depth, weights in sums.in_order()
        for distance, weight in zip(
            distances, weights / counts[place, depth], strict=True
        )
    ]
    return WeightByDistance(plain(rows), stream.sentences, stream.skipped)


class HeadEntropy(NamedTuple):
    """How evenly a head distributes its weights.

    Attributes:
        place, layer, head: the head; numbers from 1, layers from the bottom.
        entropy: mean of `-sum_j a_ij log2 a_ij`, in bits.
        relative: mean of the entropy over that of equal weights on all that the row
            could attend to, from 0 to 1; `None` if no row has a choice.
        tokens: number of rows with weights.
    """

    place: str
    layer: int
    head: int
    entropy: float
    relative: float | None
    tokens: int


@dataclass(frozen=True)
class Entropy(Table):
    """How evenly heads distribute their weights: one row a head."""

    title: ClassVar[str] = "Entropy of heads"

    def panels(self) -> list[Panel]:
        heads = [(row.place, row.layer, row.head, row.entropy) for row in self.rows]
        return [head_panel(heads, self.title, "entropy (bits)")]


def entropy(model: Any, tokenizer: Any, pairs: Pairs) -> Entropy:
    """How evenly each head distributes its weights over tokens.

    Rows that do not sum to 1 are divided by their sums; rows without weights are not
    counted. Arguments and errors as for `locality`.
    """
    stream, sums = Stream(model, encoded(tokenizer, pairs)), Sums()
    for batch in stream:
        lengths = np.array([len(example.source_ids) for example in batch.examples])
        for layer in batch.layers:
            bits = row_entropy(layer.weights)
            choices = np.broadcast_to(keys_of(layer, lengths), bits.shape)
            chosen = choices > 1
            most = np.log2(np.maximum(choices, 2))
            sums.add(layer, per_head(layer, bits, bits / most * chosen, chosen))
    rows = [
        HeadEntropy(
            place,
            depth,
            head,
            bits / count,
            relative / chosen if chosen else None,
            int(count),
        )
        for place, depth, heads in sums.in_order()
        for head, (count, bits, relative, chosen) in enumerate(heads, start=1)
        if count
    ]
    return Entropy(plain(rows), stream.sentences, stream.skipped)


def row_entropy(weights: np.ndarray) -> np.ndarray:
    """The entropy of each row in bits: `[B, H, T, S]` to `[B, H, T]`."""
    total = weights.sum(-1, keepdims=True)
    shares = weights / np.where(total > 0, total, 1.0)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return -(shares * logs).sum(-1)


def keys_of(layer: Attended, lengths: np.ndarray) -> np.ndarray:
    """How many tokens each row could attend to: `[B, 1, T]`, or `[1, 1, T]`.

    Args:
        layer: the weights.
        lengths: of the sources, `[B]`.
    """
    positions = layer.weights.shape[2]
    if layer.place == "decoder":
        return np.arange(1, positions + 1)[None, None]
    return np.broadcast_to(lengths[:, None, None], (len(lengths), 1, positions))


def per_head(layer: Attended, *values: np.ndarray) -> np.ndarray:
    """Float64 `[H, 1 + n]`: the number of rows with weights, and sums over them.

    Args:
        layer: the weights.
        *values: `[B, H, T]` each.
    """
    rows = layer.rows
    parts = [rows, *(value * rows for value in values)]
    return np.stack([part.sum((0, 2), dtype="float64") for part in parts], axis=-1)


def plain(rows: Iterable[Any]) -> tuple[Any, ...]:
    """Rows whose numbers are Python's own."""
    return tuple(
        type(row)(*(v.item() if isinstance(v, np.generic) else v for v in row))
        for row in rows
    )
