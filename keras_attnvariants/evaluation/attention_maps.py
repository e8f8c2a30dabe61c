"""The attention weights between a sentence and its translation, as matrices.

The pictures need matplotlib, which only those who draw have to install.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

import keras
import numpy as np

from keras_attnvariants.data import Tokenizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What precedes and follows a sentence.
START, END = "<s>", "</s>"

TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}


INK = "0.25"
DOTS_PER_INCH = 110
COLORS = 128

# Sizes in inches: a cell, the labels of an axis, the title, a gap, the color scale.
CELL, WORDS, TITLE, GAP, SCALE = 0.17, 0.6, 0.45, 0.25, 0.6


@dataclass(frozen=True)
class Panel:
    """One matrix of weights.

    Attributes:
        title: drawn above the matrix.
        weights: `[rows, columns]`.
        rows, columns: the tokens that label the axes.
    """

    title: str
    weights: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]


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


def draw(panels: Sequence[Panel], path: Path) -> None:
    """Draws the panels in one or two rows and saves them as a small PNG."""
    across = len(panels) if len(panels) <= 3 else -(-len(panels) // 2)
    draw_rows(rows_of(panels, across), path)


def rows_of(panels: Sequence[Panel], across: int) -> list[Sequence[Panel]]:
    """The panels in rows of so many."""
    return [panels[start : start + across] for start in range(0, len(panels), across)]


def draw_rows(grid: Sequence[Sequence[Panel]], path: Path) -> None:
    """Draws rows of panels, all with the same colors, and saves them as a small PNG."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    figure_of(grid).savefig(path, dpi=DOTS_PER_INCH)
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLORS).save(path, optimize=True)


def figure_of(grid: Sequence[Sequence[Panel]]) -> "Figure":
    """Rows of panels, all with the same colors."""
    from matplotlib.figure import Figure

    highest = max(panel.weights.max() for row in grid for panel in row)
    heights = [TITLE + WORDS + CELL * max(len(p.rows) for p in row) for row in grid]
    width = max(sum(widths(row)) for row in grid) + SCALE
    figure = Figure(figsize=(width, sum(heights)))
    for number, row in enumerate(grid):
        left, top = 0.0, sum(heights[number:]) - TITLE
        for panel, taken in zip(row, widths(row), strict=True):
            left += taken
            size = CELL * len(panel.columns), CELL * len(panel.rows)
            axis = add_axes(figure, left - size[0], top, *size)
            image = fill(axis, panel, highest, with_rows=taken - size[0] > GAP)
    scale = add_axes(figure, width - SCALE + 0.1, sum(heights) - TITLE, 0.07, 1.2)
    bar = figure.colorbar(image, cax=scale)
    bar.outline.set_visible(False)
    scale.tick_params(length=0, labelsize=7, labelcolor=INK)
    return figure


def widths(row: Sequence[Panel]) -> list[float]:
    """The width of each panel, with row labels unless they repeat those on its left."""
    found = []
    for left, panel in zip((None, *row), row, strict=False):
        is_new = left is None or left.rows != panel.rows
        found.append((WORDS if is_new else GAP) + CELL * len(panel.columns))
    return found


def add_axes(
    figure: "Figure", left: float, top: float, width: float, height: float
) -> Any:
    """Adds axes at a position in inches, from the lower left corner of the figure."""
    across, up = figure.get_size_inches()
    place = (left / across, (top - height) / up, width / across, height / up)
    return figure.add_axes(place)


def fill(axis: Any, panel: Panel, highest: float, with_rows: bool) -> Any:
    """Draws one panel and returns its image."""
    image = axis.imshow(panel.weights, cmap="Blues", vmin=0.0, vmax=highest)
    axis.set_title(panel.title, fontsize=9, color=INK)
    axis.set_xticks(range(len(panel.columns)), panel.columns, rotation=90)
    axis.set_yticks(range(len(panel.rows)) if with_rows else [])
    if with_rows:
        axis.set_yticklabels(panel.rows)
    axis.tick_params(length=0, labelsize=8, labelcolor=INK)
    axis.spines[:].set_color("0.8")
    return image
