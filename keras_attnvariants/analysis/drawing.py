"""The pictures of analyses.

Needs matplotlib, which only those who draw have to install.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from keras_attnvariants.evaluation.attention_maps import Panel
from keras_attnvariants.evaluation.attention_maps import figure_of
from keras_attnvariants.evaluation.attention_maps import rows_of
from keras_attnvariants.evaluation.curves import COLORS
from keras_attnvariants.evaluation.curves import INK
from keras_attnvariants.evaluation.curves import decorate

WIDTH, HEIGHT = 4.5, 3.2
# Of one curve.
Points = Sequence[tuple[float, float]]


def axes_of(titles: Sequence[str]) -> tuple[Figure, list[Any]]:
    """A figure with axes side by side, one for each title."""
    figure = Figure(figsize=(WIDTH * len(titles), HEIGHT), layout="constrained")
    return figure, [
        figure.add_subplot(1, len(titles), number)
        for number in range(1, len(titles) + 1)
    ]


def head_points(rows: Sequence[Any], field: str, title: str, up: str) -> Figure:
    """A point for each head: its layer across, a column of its row up."""
    figure, [axis] = axes_of([title])
    places = list(dict.fromkeys(row.place for row in rows))
    for number, place in enumerate(places):
        shift = 0.15 * (number - (len(places) - 1) / 2)
        chosen = [row for row in rows if row.place == place]
        axis.plot(
            [row.layer + shift for row in chosen],
            [getattr(row, field) for row in chosen],
            "o",
            color=COLORS[number],
            alpha=0.7,
            label=place,
        )
    decorate(axis, title, "layer", up)
    axis.legend(frameon=False, fontsize=8)
    return figure


def lines(panels: Mapping[str, Mapping[str, Points]], across: str, up: str) -> Figure:
    """Curves by name, in panels side by side by title."""
    figure, axes = axes_of(list(panels))
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for number, (name, points) in enumerate(curves.items()):
            color = COLORS[number % len(COLORS)]
            style = ("-", "--", ":")[number // len(COLORS) % 3]
            axis.plot(
                *zip(*points, strict=True),
                style,
                color=color,
                label=name,
                linewidth=1.4,
            )
        decorate(axis, title, across, up)
        axis.legend(frameon=False, fontsize=8)
    return figure


def intervals(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float, float, float]]]],
    across: str,
    up: str,
) -> Figure:
    """Curves with intervals, by name, in panels side by side by title.

    Args:
        panels: points `(x, value, low, high)`.
        across, up: labels of the axes.
    """
    figure, axes = axes_of(list(panels))
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for number, (name, points) in enumerate(curves.items()):
            color = COLORS[number % len(COLORS)]
            if points:
                x, value, low, high = zip(*points, strict=True)
                axis.plot(x, value, "o-", color=color, label=name, markersize=4)
                axis.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
        decorate(axis, title, across, up)
        axis.legend(frameon=False, fontsize=8)
    return figure


def bars(
    rows: Sequence[tuple[str, float, float, float]], title: str, up: str
) -> Figure:
    """A bar for each name, with an interval.

    Args:
        rows: `(name, value, low, high)`.
        title: of the picture.
        up: label of the values.
    """
    figure = Figure(figsize=(2 * WIDTH, 0.3 * len(rows) + 1.2), layout="constrained")
    axis = figure.add_subplot()
    names, values, low, high = zip(*rows, strict=True)
    errors = [
        [value - bound for value, bound in zip(values, low, strict=True)],
        [bound - value for value, bound in zip(values, high, strict=True)],
    ]
    places = range(len(rows))
    axis.barh(places, values, xerr=errors, color=COLORS[0], ecolor=INK, height=0.7)
    decorate(axis, title, up)
    axis.set_yticks(places, names)
    axis.invert_yaxis()
    return figure


def heat_maps(maps: Mapping[str, Sequence[Any]], across: int) -> Figure:
    """Matrices on one scale of colours.

    Args:
        maps: cells with `row`, `column`, `row_text`, `column_text` and `weight`, by
            title.
        across: most matrices side by side.
    """
    panels = []
    for title, cells in maps.items():
        rows = {cell.row: cell.row_text for cell in cells}
        columns = {cell.column: cell.column_text for cell in cells}
        weights = np.reshape([cell.weight for cell in cells], (len(rows), len(columns)))
        panels.append(Panel(title, weights, [*rows.values()], [*columns.values()]))
    return figure_of(rows_of(panels, across))
