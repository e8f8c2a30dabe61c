"""Matrices of weights side by side, as a picture.

Needs matplotlib, which only those who draw have to install.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

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


def draw(panels: Sequence[Panel], path: Path) -> None:
    """Draws the panels in one or two rows and saves them as a small PNG."""
    across = len(panels) if len(panels) <= 3 else -(-len(panels) // 2)
    draw_rows(rows_of(panels, across), path)


def rows_of(panels: Sequence[Panel], across: int) -> list[Sequence[Panel]]:
    """The panels in rows of so many."""
    return [panels[start : start + across] for start in range(0, len(panels), across)]


def draw_rows(grid: Sequence[Sequence[Panel]], path: Path) -> None:
    """Draws rows of panels, all with the same colors, and saves them as a small PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure_of(grid).savefig(path, dpi=DOTS_PER_INCH)
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLORS).save(path, optimize=True)


def figure_of(grid: Sequence[Sequence[Panel]]) -> Figure:
    """Rows of panels, all with the same colors."""
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
    figure: Figure, left: float, top: float, width: float, height: float
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
