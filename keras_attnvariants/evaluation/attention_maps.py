"""The attention weights between a source and its target, as matrices.

The pictures need matplotlib, an optional dependency.
"""

import itertools
import math
from collections.abc import Collection
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
from keras_attnvariants.data.sentencepiece_models import SPACE
from keras_attnvariants.utils.chunks import chunks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Tokens before and after a sentence.
START, END = "<s>", "</s>"

TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}


INK = "0.25"
DOTS_PER_INCH = 110
COLORS = 128

# In inches: a cell, a gap, and room for the labels of an axis or for the colour scale.
CELL, GAP, WORDS = 0.17, 0.25, 1.05
# Largest size of a row or a column of panels: long sources have smaller cells.
LARGEST = 60.0


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
        """The weights `[B, H, T, S]` of tokens, also for attention to n-grams."""
        if not hasattr(self.layer, "token_scores"):
            return self.weights
        return keras.ops.convert_to_numpy(self.layer.token_scores(self.weights))


def layer_weights(model: Any, scores: Mapping[str, Any]) -> Iterator[LayerWeights]:
    """The weights of every layer that has some, from the bottom.

    Args:
        model: the model that computed them.
        scores: result of its `attention_scores`.
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


class AttentionExample:
    """A model, a source and its target, and the weights between their positions.

    Args:
        model: with a method `attention_scores`, such as a `Transformer`.
        tokenizer: its tokenizer.
        source: a text, or the path of a recording.
        target: its translation, summary or transcript.

    Raises:
        FileNotFoundError: there is no such recording.
        ValueError: a side has no positions, or more than the model takes; or the file
            is not a recording.

    Attributes:
        source_pieces: the pieces of the text, or the seconds at which the positions of
            the recording begin.
        target_pieces: those of the target.
        inputs: token ids, `"source_ids"` and `"target_ids"`.
        scores: weights by block and sub-layer, as arrays.
        axes: labels of rows and columns by place.
    """

    def __init__(
        self, model: keras.Model, tokenizer: Tokenizer, source: str, target: str
    ) -> None:
        self.model = model
        ids = [*tokenizer.encode([source]), *tokenizer.target.encode([target])]
        [self.source_pieces] = tokenizer.split([source])
        [self.target_pieces] = tokenizer.target.split([target])
        sides = (source, self.source_pieces), (target, self.target_pieces)
        for text, found in sides:
            if not 0 < len(found) < model.max_length:
                raise ValueError(
                    f"A source or target must have from 1 to {model.max_length - 1} "
                    f"positions. Received: {len(found)} in {text!r:.80}"
                )
        self.inputs = {
            "source_ids": np.array([ids[0]], "int32"),
            "target_ids": np.array([[tokenizer.bos_id, *ids[1]]], "int32"),
        }
        scores = model.attention_scores(self.inputs)
        self.scores = keras.tree.map_structure(keras.ops.convert_to_numpy, scores)
        columns, rows = ([label(piece) for piece in found] for _, found in sides)
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

    def highest(
        self, depth: int | None = None, places: Collection[str] = TITLES
    ) -> dict[str, LayerWeights]:
        """The weights `[H, T, S]` of one layer for each place.

        Args:
            depth: number of the layer; `None` for the highest with weights.
            places: places to look at.

        Raises:
            ValueError: no such layer has weights.
        """
        chosen = {
            layer.place: layer
            for layer in self.weights()
            if depth in (None, layer.depth) and layer.place in places
        }
        if not chosen:
            which = "layer" if depth is None else f"layer {depth}"
            raise ValueError(
                f"No {which} of this model has attention weights: n-grams have none. "
                f"Received: a {type(self.model).__name__}"
            )
        return chosen

    def rows(self, depth: int | None = None, across: int = 4) -> list[Sequence[Panel]]:
        """Panels of all heads of one layer for each place, in rows.

        Args:
            depth: number of the layer; `None` for the highest with weights.
            across: maximum number of panels in a row.

        Raises:
            ValueError: no such layer has weights.
        """
        chosen = self.highest(depth)
        rows: list[Sequence[Panel]] = []
        for place in filter(chosen.__contains__, TITLES):
            depth, heads = chosen[place].depth, chosen[place].weights
            panels = [
                # Panels may be narrow: later ones say only what differs.
                Panel(f"\nhead {number}", weights, *self.axes[place])
                if (number - 1) % across
                else self.panel(place, f"layer {depth}, head {number}", weights)
                for number, weights in enumerate(heads, start=1)
            ]
            rows += chunks(panels, across)
        return rows


def label(piece: str) -> str:
    """A readable form of a piece: pieces that continue a word begin with a hyphen."""
    if piece.startswith(SPACE):
        return piece[1:] or "_"
    return f"-{piece}" if piece.isalnum() else piece


def save(figure: "Figure", path: Path) -> None:
    """Saves a figure as a small PNG."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DOTS_PER_INCH)
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLORS).save(path, optimize=True)


def figure_of(grid: Sequence[Sequence[Panel]]) -> "Figure":
    """Rows of panels, all with the same colors."""
    from matplotlib.figure import Figure

    panels = [panel for row in grid for panel in row]
    highest = max(panel.weights.max() for panel in panels)
    rows = [max(len(panel.rows) for panel in row) for row in grid]
    columns = [
        max(len(panel.columns) for panel in column if panel)
        for column in itertools.zip_longest(*grid)
    ]
    cell = min(CELL, LARGEST / max(sum(columns), sum(rows)))
    width = WORDS + GAP * len(columns) + cell * sum(columns)
    size = width, WORDS * len(rows) + cell * sum(rows)
    figure = Figure(figsize=size, layout="compressed")
    axes = figure.subplots(
        len(rows),
        len(columns),
        squeeze=False,
        height_ratios=rows,
        width_ratios=columns,
    )
    for row, places, height in zip(grid, axes, rows, strict=True):
        before = None
        for panel, axis, width in itertools.zip_longest(row, places, columns):
            if panel is None:
                axis.remove()
                continue
            every = math.ceil(CELL / cell)  # labels that do not cover each other
            image = fill(axis, panel, highest, every, with_rows=panel.rows != before)
            axis.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
            before = panel.rows
    bar = figure.colorbar(image, ax=list(axes[0, : len(grid[0])]), shrink=0.6)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=7, labelcolor=INK)
    return figure


def fill(axis: Any, panel: Panel, highest: float, every: int, with_rows: bool) -> Any:
    """Draws one panel, with every `every`-th label, and returns its image."""
    from matplotlib.patches import Rectangle

    height, width = panel.weights.shape
    image = axis.imshow(panel.weights, cmap="Blues", vmin=0.0, vmax=highest)
    # Labels are right below the panel, even if others in its row are taller.
    axis.spines.bottom.set_position(("data", height - 0.5))
    axis.set_anchor("N")
    axis.set_title(panel.title, fontsize=9, color=INK, loc="left")
    axis.set_xticks(range(0, width, every), panel.columns[::every], rotation=90)
    labels = panel.rows[::every] if with_rows else []
    axis.set_yticks(range(0, height, every)[: len(labels)], labels)
    axis.tick_params(length=0, labelsize=8, labelcolor=INK)
    axis.spines[:].set_visible(False)
    axis.add_patch(Rectangle((-0.5, -0.5), width, height, fill=False, edgecolor="0.8"))
    return image
