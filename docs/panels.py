"""Matrices of weights, drawn side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

INK = "0.25"
CELL = 0.19  # inches
DOTS_PER_INCH = 110
COLORS = 128


@dataclass(frozen=True)
class Panel:
    """One matrix: what each row looks at.

    Attributes:
        title: above it.
        weights: `[rows, columns]`.
        rows, columns: the tokens.
    """

    title: str
    weights: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]


def draw(panels: Sequence[Panel], path: Path) -> None:
    """Writes the panels, in one or two rows, as one small PNG."""
    highest = max(panel.weights.max() for panel in panels)
    width = len(panels) if len(panels) <= 3 else -(-len(panels) // 2)
    grid = [panels[start : start + width] for start in range(0, len(panels), width)]
    columns = [max(len(p.columns) for p in group) for group in zip(*grid, strict=False)]
    rows = [max(len(panel.rows) for panel in group) for group in grid]
    size = CELL * sum(columns) + 0.5 * width + 1.0, CELL * sum(rows) + len(rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(
        len(grid), width, squeeze=False, width_ratios=columns, height_ratios=rows
    )
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    for number, (axis, panel) in enumerate(zip(axes.flat, panels, strict=False)):
        left = panels[number - 1] if number % width else None
        fill(axis, panel, highest, with_rows=left is None or left.rows != panel.rows)
    bar = figure.colorbar(axes[0, 0].images[0], ax=axes, shrink=0.4, aspect=25)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=7, labelcolor=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DOTS_PER_INCH)
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLORS).save(path, optimize=True)


def fill(axis, panel: Panel, highest: float, with_rows: bool) -> None:
    """Draws one panel."""
    axis.imshow(panel.weights, cmap="Blues", vmin=0.0, vmax=highest)
    axis.set_anchor("N")
    axis.set_title(panel.title, fontsize=9, color=INK)
    axis.set_xticks(range(len(panel.columns)), panel.columns, rotation=90)
    axis.set_yticks(
        range(len(panel.rows)), panel.rows if with_rows else [""] * len(panel.rows)
    )
    axis.tick_params(length=0, labelsize=8, labelcolor=INK)
    axis.spines[:].set_color("0.8")
