"""What a model attends to in a sentence and its translation."""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

import keras
import numpy as np

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.evaluation.panels import Panel

# What precedes and follows a sentence.
START, END = "<s>", "</s>"

TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}


class LayerWeights(NamedTuple):
    """The weights of one attention layer.

    Attributes:
        place: `"encoder"`, `"decoder"` or `"cross"`.
        depth: number of the layer, from 1 at the bottom.
        weights: `[B, H, T, S]`, as the layer returns them.
        layer: the layer itself; `None` if the model does not name it.
    """

    place: str
    depth: int
    weights: np.ndarray
    layer: Any

    def of_tokens(self) -> np.ndarray:
        """The weights `[B, H, T, S]` of tokens, also where n-grams are attended to."""
        if not hasattr(self.layer, "token_scores"):
            return self.weights
        return keras.ops.convert_to_numpy(self.layer.token_scores(self.weights))


def layer_weights(model: Any, scores: Mapping[str, Any]) -> Iterator[LayerWeights]:
    """The weights of every layer that has some, from the bottom.

    Args:
        model: what the weights are of.
        scores: what its `attention_scores` returned.
    """
    blocks = {
        block.name: block
        for name in ("encoder_blocks", "decoder_blocks")
        for block in getattr(model, name, ())
    }
    for name, found in scores.items():
        side, _, number = name.partition("_")
        for sublayer, weights in found.items():
            layer = getattr(blocks.get(name), f"{sublayer}_attention", None)
            place = "cross" if sublayer == "cross" else side
            weights = keras.ops.convert_to_numpy(weights)
            yield LayerWeights(place, int(number or 0) + 1, weights, layer)


class Reading:
    """A model, a sentence and its translation in tokens, and the weights between them.

    Args:
        model: with a method `attention_scores`, such as a `Transformer`.
        tokenizer: its tokenizer.
        source, target: the sentence and its translation.

    Raises:
        ValueError: a text has no tokens, or more than the model takes.

    Attributes:
        inputs: token ids, `"source_ids"` and `"target_ids"`.
        scores: weights by block and sub-layer, as arrays.
        axes: labels of rows and columns by place.
    """

    def __init__(
        self, model: keras.Model, tokenizer: Tokenizer, source: str, target: str
    ) -> None:
        self.model = model
        ids = tokenizer.encode([source, target])
        for text, found in zip((source, target), ids, strict=True):
            if not 0 < len(found) < model.max_length:
                raise ValueError(
                    f"A text must have from 1 to {model.max_length - 1} tokens. "
                    f"Received: {len(found)} in {text!r:.80}"
                )
        self.inputs = {
            "source_ids": np.array([ids[0]], "int32"),
            "target_ids": np.array([[tokenizer.bos_id, *ids[1]]], "int32"),
        }
        scores = model.attention_scores(self.inputs)
        self.scores = keras.tree.map_structure(keras.ops.convert_to_numpy, scores)
        pieces = tokenizer.pieces
        rows, columns = ([label(pieces[i]) for i in row] for row in reversed(ids))
        # Rows of cross-attention are labelled with the token that is predicted.
        self.axes = {
            "encoder": (columns, columns),
            "decoder": ([START, *rows],) * 2,
            "cross": ([*rows, END], columns),
        }

    def panel(self, place: str, subtitle: str, weights: np.ndarray) -> Panel:
        """A panel of one matrix."""
        return Panel(f"{TITLES[place]}\n{subtitle}", weights, *self.axes[place])

    def weights(self) -> Iterator[LayerWeights]:
        """The weights `[H, T, S]` of every layer that has some, between tokens."""
        for found in layer_weights(self.model, self.scores):
            yield found._replace(weights=found.of_tokens()[0])

    def rows(self, depth: int | None = None, across: int = 4) -> list[list[Panel]]:
        """Panels of all heads of one layer for each place, in rows.

        Args:
            depth: number of the layer; `None` for the highest with weights.
            across: most panels in a row.

        Raises:
            ValueError: no such layer has weights.
        """
        chosen: dict[str, LayerWeights] = {}
        for layer in self.weights():
            if depth in (None, layer.depth):
                chosen[layer.place] = layer
        if not chosen:
            which = "layer" if depth is None else f"layer {depth}"
            raise ValueError(
                f"No {which} of this model has attention weights: n-grams have none. "
                f"Received: a {type(self.model).__name__}"
            )
        rows = []
        for place in TITLES:
            if place not in chosen:
                continue
            layer = chosen[place]
            for start in range(0, len(layer.weights), across):
                heads = layer.weights[start : start + across]
                where = f"layer {layer.depth}, head {start + 1}"
                first = self.panel(place, where, heads[0])
                # Panels may be narrow: the others say only what differs.
                others = [
                    Panel(f"\nhead {number}", weights, *self.axes[place])
                    for number, weights in enumerate(heads[1:], start=start + 2)
                ]
                rows.append([first, *others])
        return rows


def label(piece: str) -> str:
    """A readable form of a piece: pieces that continue a word begin with a hyphen."""
    if piece.startswith("▁"):
        return piece[1:] or "_"
    return f"-{piece}" if piece.isalnum() else piece
