"""The quadrants of phrase attention: tokens or phrases, from tokens or phrases."""

from collections.abc import Iterator
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

import numpy as np
from keras import ops

from keras_attnvariants.analysis.streams import BatchWeights
from keras_attnvariants.analysis.streams import Pairs
from keras_attnvariants.analysis.streams import Stream
from keras_attnvariants.analysis.streams import encoded
from keras_attnvariants.analysis.streams import layer_sums
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.evaluation import attention_maps
from keras_attnvariants.evaluation.attention_maps import AttentionExample
from keras_attnvariants.evaluation.attention_maps import LayerWeights
from keras_attnvariants.evaluation.attention_maps import layer_weights
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.chunks import chunks
from keras_attnvariants.utils.records import grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = ("mass", "strong", "winner")
NO_PHRASES = "No such layer of this model attends to tokens and phrases."


class QuadrantShare(NamedTuple):
    """The share of one quadrant in a layer, by one measure.

    Attributes:
        place, layer: the layer; numbers from 1, from the bottom.
        measure: `"mass"`, the sum of the weights; `"strong"`, the number of weights
            that reach a threshold; `"winner"`, the number of positions and heads where
            the largest weight is in the quadrant.
        query, key: number of tokens in a query and in a key.
        share: in percent; all quadrants of a layer sum to 100, or to 0 if there are
            none to count.
    """

    place: str
    layer: int
    measure: str
    query: int
    key: int
    share: float


def activation_shares(
    model: Any, tokenizer: Any, pairs: Pairs, threshold: float = 0.5
) -> Table:
    """The shares of quadrants in the weights (Nguyen and Joty 2018, Tables 3 and 4).

    The paper does not define its "activations", so there are three measures; see
    `QuadrantShare`. Interleaved attention has four quadrants: token or phrase queries,
    token or phrase keys. Attention with one query has one for each n-gram order.

    Args:
        model, tokenizer, pairs: see `locality`.
        threshold: the smallest weight that is strong, at most 1.

    Returns:
        A `QuadrantShare` for each layer with phrase attention, measure and quadrant.

    Raises:
        ValueError: the threshold is out of range, nothing can be analysed, or the
            model has no phrase attention.
    """
    if check_positive("threshold", threshold) > 1:
        raise ValueError(f"`threshold` must be at most 1. Received: {threshold}")
    orders: dict[tuple[str, int], list[tuple[int, int]]] = {}

    def measure(layer: BatchWeights) -> np.ndarray | None:
        if not has_quadrants(layer.raw):
            return None
        orders[layer.place, layer.depth] = quadrant_orders(layer.raw)
        split = quadrants(layer.raw)
        strong = by_quadrant(split >= threshold)
        return np.stack([by_quadrant(split), strong, winners(split)])

    stream = Stream(model, encoded(tokenizer, pairs))
    rows = [
        QuadrantShare(*where, name, query, key, 100 * number / max(count.sum(), 1e-9))
        for where, counts in layer_sums(stream, measure, NO_PHRASES).items()
        for name, count in zip(MEASURES, counts, strict=True)
        for (query, key), number in zip(orders[where], count.flat, strict=True)
    ]
    return Table.of("activation-shares", rows, stream.sentences, stream.skipped)


class QuadrantWeight(NamedTuple):
    """One cell of a heat map.

    Attributes:
        place, layer: the layer; numbers from 1, from the bottom.
        query, key: number of tokens in the query and in the key.
        row, column: positions of their last tokens, from 0.
        row_text, column_text: their tokens.
        weight: the mean over heads.
    """

    place: str
    layer: int
    query: int
    key: int
    row: int
    column: int
    row_text: str
    column_text: str
    weight: float


class QuadrantMaps(Table):
    """Heat maps of quadrants, with a row (`QuadrantWeight`) for each cell."""

    def figure(self) -> "Figure":
        """The matrices, with a common colour scale."""
        maps = []
        for (place, layer, query, key), rows, columns, weights in self.matrices():
            title = f"{place} {layer}\n{gram_name(query)} to {gram_name(key)}"
            maps.append(attention_maps.Panel(title, weights, rows, columns))
        across = len({row.key for row in self.rows})
        return attention_maps.figure_of([*chunks(maps, across)])

    def matrices(self) -> Iterator[tuple[Any, list[str], list[str], np.ndarray]]:
        """Place, layer, query and key of each map; texts of rows, columns; weights."""
        quadrants = grouped(self.rows, "place", "layer", "query", "key")
        for where, own in quadrants.items():
            rows = {cell.row: cell.row_text for cell in own}
            columns = {cell.column: cell.column_text for cell in own}
            weights = np.reshape([cell.weight for cell in own], (len(rows), -1))
            yield where, [*rows.values()], [*columns.values()], weights


def gram_name(order: int) -> str:
    """The name of an n-gram in a picture."""
    return {1: "token", 2: "phrase"}.get(order, f"{order}-gram")


def quadrant_maps(model: Any, tokenizer: Any, source: str, target: str) -> QuadrantMaps:
    """The weights of all quadrants on a sentence (Nguyen and Joty 2018, Fig. 4 to 6).

    Args:
        model, tokenizer, source, target: see `AttentionExample`; the model has phrase
            attention.

    Returns:
        A row for each query and n-gram; the picture has one colour scale.

    Raises:
        ValueError: the sentence does not fit the model, or no layer has phrase
            attention.
    """
    maps = maps_of(AttentionExample(model, tokenizer, source, target))
    if not maps.rows:
        raise ValueError(NO_PHRASES)
    return maps


def maps_of(example: AttentionExample) -> QuadrantMaps:
    """The weights of all quadrants of all layers."""
    rows = [
        cell
        for layer in layer_weights(example.model, example.scores)
        if has_quadrants(layer)
        for cell in cells(layer, example)
    ]
    return QuadrantMaps.of("heat-maps", rows, 1)


def cells(layer: LayerWeights, example: AttentionExample) -> Iterator[QuadrantWeight]:
    """The cells of the heat maps of a layer on one sentence."""
    source, target = example.axes["encoder"][0], example.axes["decoder"][0]
    queries = source if layer.place == "encoder" else target
    keys = target if layer.place == "decoder" else source
    mean = quadrants(layer)[0].mean(0)  # [T, M, N, S]
    blocks = mean.reshape(len(mean), -1, mean.shape[-1]).swapaxes(0, 1)
    for (query, key), weights in zip(quadrant_orders(layer), blocks, strict=True):
        for row, column in product(range(query - 1, len(queries)), range(len(keys))):
            yield QuadrantWeight(
                layer.place,
                layer.depth,
                query,
                key,
                row,
                column,
                gram(queries, row, query),
                gram(keys, column, key),
                weights[row, column],
            )


def gram(words: Sequence[str], last: int, order: int) -> str:
    """The n-gram that ends at a position."""
    return " ".join(words[max(last + 1 - order, 0) : last + 1])


def has_quadrants(layer: LayerWeights) -> bool:
    """Whether all heads of a layer attend to the same orders, more than one."""
    attention = layer.layer
    return isinstance(attention, PhraseAttention) and attention.score_blocks > 1


def quadrants(layer: LayerWeights) -> np.ndarray:
    """The weights of phrase attention `[B, H, T, M, N, S]`."""
    return ops.convert_to_numpy(layer.layer.split_scores(layer.weights))


def winners(scores: np.ndarray) -> np.ndarray:
    """Float64 `[M, N]`: number of rows of `[B, H, T, M, N, S]` that each quadrant wins.

    Rows without weights are not counted.
    """
    highest = scores.max(-1)  # [B, H, T, M, N]
    rows = highest.reshape(-1, highest[0, 0, 0].size)
    wins = np.eye(rows.shape[1])[rows.argmax(-1)[rows.max(-1) > 0]]
    return wins.sum(0).reshape(highest.shape[-2:])


def by_quadrant(scores: np.ndarray) -> np.ndarray:
    """Float64 `[M, N]`, the sum of `[B, H, T, M, N, S]` over all other axes."""
    return scores.sum((0, 1, 2, 5), dtype="float64")


def quadrant_orders(layer: LayerWeights) -> list[tuple[int, int]]:
    """Orders of query and key of each quadrant, in the order of `[M, N]`."""
    structure = layer.layer.structure
    [group, *_] = structure.groups(layer.layer.num_heads)
    return list(product(structure.query_orders, group.orders))
