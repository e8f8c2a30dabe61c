"""The pictures of analyses, side by side.

Needs matplotlib, which only those who draw have to install.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from keras_attnvariants.analysis.tables import Panel
from keras_attnvariants.evaluation.curves import COLORS
from keras_attnvariants.evaluation.curves import INK
from keras_attnvariants.evaluation.curves import decorate

# In inches: of a panel, and of a bar.
WIDTH, HEIGHT, BAR = 4.5, 3.2, 0.3


def draw_panels(panels: Sequence[Panel]) -> Figure:
    """A figure with the panels side by side."""
    width, height = WIDTH * len(panels), HEIGHT
    bars = [
        len(values) for p in panels if p.kind == "bars" for values in p.curves.values()
    ]
    if bars:
        width, height = 2 * width, BAR * max(bars) + 1.2
    figure = Figure(figsize=(width, height), layout="constrained")
    for number, panel in enumerate(panels, start=1):
        axis = figure.add_subplot(1, len(panels), number)
        draw = draw_bars if panel.kind == "bars" else draw_curves
        draw(axis, panel)
    return figure


def draw_curves(axis: Any, panel: Panel) -> None:
    """Points or lines by name, with their intervals."""
    has_intervals = any(v.low is not None for vs in panel.curves.values() for v in vs)
    for number, (name, values) in enumerate(panel.curves.items()):
        if not values:
            continue
        x, y, low, high, _ = zip(*values, strict=True)
        style: dict[str, Any] = {"color": COLORS[number % len(COLORS)], "label": name}
        if panel.kind == "points":
            axis.plot(x, y, "o", alpha=0.7, **style)
        elif has_intervals:
            axis.plot(x, y, "o-", markersize=4, **style)
            axis.fill_between(
                x, low, high, color=style["color"], alpha=0.15, linewidth=0
            )
        else:
            dashes = ("-", "--", ":")[number // len(COLORS) % 3]
            axis.plot(x, y, dashes, linewidth=1.4, **style)
    decorate(axis, panel.title, panel.across, panel.up)
    axis.legend(frameon=False, fontsize=8)


def draw_bars(axis: Any, panel: Panel) -> None:
    """A bar for each name, with an interval."""
    [values] = panel.curves.values()
    names, lengths, low, high, _ = zip(*values, strict=True)
    errors = [
        [value - bound for value, bound in zip(lengths, low, strict=True)],
        [bound - value for value, bound in zip(lengths, high, strict=True)],
    ]
    places = range(len(names))
    axis.barh(places, lengths, xerr=errors, color=COLORS[0], ecolor=INK, height=0.7)
    decorate(axis, panel.title, panel.up)
    axis.set_yticks(places, names)
    axis.invert_yaxis()
