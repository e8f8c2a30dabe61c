"""Statistics of heads: distances, offsets from the diagonal, and entropy."""

from typing import Any
from typing import NamedTuple

import numpy as np

from keras_attnvariants.analysis.streams import BatchWeights
from keras_attnvariants.analysis.streams import Pairs
from keras_attnvariants.analysis.streams import Stream
from keras_attnvariants.analysis.streams import encoded
from keras_attnvariants.analysis.streams import head_sums
from keras_attnvariants.analysis.streams import layer_sums
from keras_attnvariants.analysis.streams import per_head
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.records import grouped

NEAREST = range(-3, 4)
# A row is off the diagonal if it looks at least this many tokens away.
FAR = 2


class HeadLocality(NamedTuple):
    """Distance of the largest weight of a head, in tokens.

    Attributes:
        place, layer, head: the head; numbers from 1, layers from the bottom.
        distance: mean of `abs(argmax_j a_ij - i)`.
        signed: mean of `argmax_j a_ij - i`: negative to the left.
        left_3, …, itself, …, right_3: share of each offset in `NEAREST`.
        tokens: number of rows with weights.
    """

    place: str
    layer: int
    head: int
    distance: float
    signed: float
    left_3: float
    left_2: float
    left_1: float
    itself: float
    right_1: float
    right_2: float
    right_3: float
    tokens: int

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of each offset in `NEAREST`."""
        return self[5:12]


def locality(model: Any, tokenizer: Any, pairs: Pairs) -> Table:
    """The distance of the largest weight of each head (You et al. 2020, Fig. 2).

    The offset of a row is the position of its largest weight, the first of equal ones,
    minus the position of its query. In cross-attention, both are counted from the
    start of their sentences. Position 0 of the target is BOS, from which its first
    token is predicted. Rows without weights are not counted.

    Args:
        model: with a method `attention_scores`, such as a `Transformer`.
        tokenizer: its tokenizer.
        pairs: sentences and their translations, read once.

    Returns:
        A row, `HeadLocality`, for every head that has weights.

    Raises:
        ValueError: nothing can be analysed, or no layer has weights.
    """

    def measure(layer: BatchWeights) -> np.ndarray:
        offsets = layer.offsets
        return per_head(layer, abs(offsets), offsets, *(offsets == n for n in NEAREST))

    stream = Stream(model, encoded(tokenizer, pairs))
    rows = [
        HeadLocality._make((*head, *(sums / count), int(count)))
        for head, count, sums in head_sums(stream, measure)
    ]
    return Table.of("locality", rows, stream.sentences, stream.skipped)


class DistanceWeight(NamedTuple):
    """Weight of a layer on one distance.

    Attributes:
        place, layer: the layer; numbers from 1, from the bottom.
        distance: position of the key minus that of the query.
        weight: sum of the weights there, divided by the number of rows with weights.
        even: the same for uniform weights over all that each row can attend to.
    """

    place: str
    layer: int
    distance: int
    weight: float
    even: float


def weight_by_distance(
    model: Any, tokenizer: Any, pairs: Pairs, farthest: int = 10
) -> Table:
    """The weight of each layer by the distance `j - i` (Loem et al. 2022, Fig. 1).

    Arguments and errors as for `locality`.

    Args:
        model, tokenizer, pairs: see `locality`.
        farthest: the largest distance with a row, in both directions.

    Returns:
        A `DistanceWeight` for each layer and distance. Over all distances the weights
        of a layer sum to 1 if its rows do.
    """
    check_integer("farthest", farthest)
    distances = range(-farthest, farthest + 1)

    def measure(layer: BatchWeights) -> np.ndarray:
        visible, heads = layer.visible, layer.rows.sum(1)[..., None]
        even = heads * (visible / np.maximum(visible.sum(-1, keepdims=True), 1))
        # In [B, H, T, S] and [B, T, S], a distance is a diagonal.
        parts = [
            (
                np.diagonal(layer.weights, distance, 2, 3).sum(dtype="float64"),
                np.diagonal(even, distance, 1, 2).sum(),
            )
            for distance in distances
        ]
        return np.array([*parts, (heads.sum(),) * 2])

    stream = Stream(model, encoded(tokenizer, pairs))
    rows = [
        DistanceWeight(*where, distance, *(sums / counts))
        for where, (*parts, counts) in layer_sums(stream, measure).items()
        for distance, sums in zip(distances, parts, strict=True)
    ]
    return Table.of("distance", rows, stream.sentences, stream.skipped)


class HeadEntropy(NamedTuple):
    """Entropy of the weights of a head.

    Attributes:
        place, layer, head: the head; numbers from 1, layers from the bottom.
        entropy: mean of `-sum_j a_ij log2 a_ij`, in bits.
        relative: mean of the entropy divided by that of uniform weights over all that
            the row can attend to, from 0 to 1; `None` if no row has a choice.
        tokens: number of rows with weights.
    """

    place: str
    layer: int
    head: int
    entropy: float
    relative: float | None
    tokens: int


def entropy(model: Any, tokenizer: Any, pairs: Pairs) -> Table:
    """The entropy of the weights of each head over tokens.

    Rows that do not sum to 1 are divided by their sums; rows without weights are not
    counted. Arguments and errors as for `locality`.
    """

    def measure(layer: BatchWeights) -> np.ndarray:
        bits, choices = row_entropy(layer.weights), layer.visible.sum(-1)[:, None]
        most = np.log2(np.maximum(choices, 2))
        return per_head(layer, bits, bits / most * (choices > 1), choices > 1)

    stream = Stream(model, encoded(tokenizer, pairs))
    rows = [
        HeadEntropy(
            *head, bits / count, relative / chosen if chosen else None, int(count)
        )
        for head, count, (bits, relative, chosen) in head_sums(stream, measure)
    ]
    return Table.of("entropy", rows, stream.sentences, stream.skipped)


def row_entropy(weights: np.ndarray) -> np.ndarray:
    """The entropy of each row in bits: `[B, H, T, S]` to `[B, H, T]`."""
    total = weights.sum(-1, keepdims=True)
    shares = weights / np.where(total > 0, total, 1.0)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return -(shares * logs).sum(-1)


class HeadDiagonality(NamedTuple):
    """Share of the tokens of a sentence from which a head looks far.

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


def off_diagonality(model: Any, tokenizer: Any, pairs: Pairs, far: int = FAR) -> Table:
    """The share of tokens that look `far` or farther (You et al. 2020, Fig. 6).

    The value of a sentence is its share of such tokens; the value of a place is the
    mean over its heads and layers. The paper does not say how it averages, and covers
    only self-attention in encoder and decoder.

    Args:
        model, tokenizer, pairs: see `locality`.
        far: smallest distance, in tokens, that counts as off the diagonal.

    Returns:
        A `HeadDiagonality` for every place, and one for every head.

    Raises:
        ValueError: see `locality`.
    """
    check_integer("far", far)

    def measure(layer: BatchWeights) -> np.ndarray:
        shares = sentence_shares(layer, far)
        return np.stack([(~np.isnan(shares)).sum(0), np.nansum(shares, 0)], axis=-1)

    stream = Stream(model, encoded(tokenizer, pairs))
    heads = [
        HeadDiagonality(*head, shares / count, int(count))
        for head, count, (shares,) in head_sums(stream, measure)
    ]
    rows: list[HeadDiagonality] = []
    for place, chosen in grouped(heads, "place").items():
        mean = sum(row.share for row in chosen) / len(chosen)
        most = max(row.sentences for row in chosen)
        rows += [HeadDiagonality(place, None, None, mean, most), *chosen]
    return Table.of("off-diagonality", rows, stream.sentences, stream.skipped)


def sentence_shares(layer: BatchWeights, far: int = FAR) -> np.ndarray:
    """The share of off-diagonal tokens of each sentence and head, float64 `[B, H]`.

    NaN stands for a head without weights on a sentence.
    """
    counts = layer.rows.sum(-1)
    found = (layer.rows & (abs(layer.offsets) >= far)).sum(-1)
    return np.where(counts > 0, found / np.maximum(counts, 1), np.nan)
