"""Pictures of tables, drawn with matplotlib."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# In inches: of a panel, and of a bar.
PANEL, BAR = (4.5, 3.2), 0.3


class Value(NamedTuple):
    """A value in a picture.

    Attributes:
        x, y: its coordinates: numbers, or a name for `x`.
        low, high: its interval.
        label: its name, where its curve and `x` do not tell it.
    """

    x: Any
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""


class Panel(NamedTuple):
    """One pair of axes of a picture.

    Attributes:
        title: above them.
        kind: see `Drawing`.
        curves: values by name.
        across: label of `x`.
        up: label of the values.
    """

    title: str
    kind: str
    curves: Mapping[str, Sequence[Value]]
    across: str
    up: str


class Drawing(NamedTuple):
    """The picture of a table, by the names of its columns.

    Attributes:
        y: column of the values; rows without one are left out.
        up: label of the values.
        x: column; rows without one are left out.
        across: label of `x`.
        kind: `"points"`, one for each head beside or above its layer; `"lines"`; or
            `"bars"`, one below the other.
        panel, curve: names of the panel and the curve of a row, with its columns as
            `{row.column}`. Points of all heads together are a curve of their own.
        interval: columns with the ends of the interval.
        x_end: column of the end of a bin that begins at `x`: its middle is shown.
    """

    y: str
    up: str
    x: str = "layer"
    across: str = "layer"
    kind: str = "points"
    panel: str = ""
    curve: str = "{row.place}"
    interval: tuple[str, str] = ("", "")
    x_end: str = ""

    def values(self, rows: Iterable[Any]) -> dict[str, dict[str, list[Value]]]:
        """The values of the picture by panel and curve."""
        found: dict[str, dict[str, list[Value]]] = {}
        for row in rows:
            x, y = getattr(row, self.x), getattr(row, self.y)
            if x is None or y is None:
                continue
            if self.x_end:
                x = (x + getattr(row, self.x_end)) / 2
            curve = self.curve.format(row=row)
            label = x if isinstance(x, str) else ""
            if self.kind == "points":
                curve = curve if row.head else f"mean of {curve}"
                head = f", head {row.head}" if row.head else ""
                label = f"{curve}, layer {row.layer}{head}"
            low, high = (getattr(row, name, None) for name in self.interval)
            curves = found.setdefault(self.panel.format(row=row), {})
            curves.setdefault(curve, []).append(Value(x, y, low, high, label))
        return found


def draw_panels(panels: Sequence[Panel]) -> "Figure":
    """A figure with the panels side by side."""
    from matplotlib.figure import Figure

    from keras_attnvariants.evaluation.curves import decorate

    width, height = PANEL[0] * len(panels), PANEL[1]
    bars = [v for p in panels if p.kind == "bars" for v in p.curves.values()]
    if bars:
        width, height = 2 * width, BAR * max(map(len, bars)) + 1.2
    figure = Figure(figsize=(width, height), layout="constrained")
    for axis, panel in zip(
        figure.subplots(1, len(panels), squeeze=False).flat, panels, strict=True
    ):
        for number, (name, values) in enumerate(panel.curves.items()):
            draw_curve(axis, panel.kind, number, name, values)
        if panel.kind == "bars":
            decorate(axis, panel.title, panel.up)
            continue
        decorate(axis, panel.title, panel.across, panel.up)
        axis.legend(frameon=False, fontsize=8)
    return figure


def draw_curve(
    axis: Any, kind: str, number: int, name: str, values: Sequence[Value]
) -> None:
    """Points, a line with its interval, or bars with theirs."""
    from keras_attnvariants.evaluation.curves import COLORS
    from keras_attnvariants.evaluation.curves import INK

    x, y, low, high, _ = zip(*values, strict=True)
    color = COLORS[number % len(COLORS)]
    if kind == "bars":
        errors = np.abs(np.subtract([low, high], y))
        axis.barh(x, y, xerr=errors, color=color, ecolor=INK, height=0.7)
        axis.invert_yaxis()
    elif kind == "points":
        axis.plot(x, y, "o", alpha=0.7, color=color, label=name)
    elif low[0] is not None:
        axis.plot(x, y, "o-", markersize=4, color=color, label=name)
        axis.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
    else:
        dashes = ("-", "--", ":")[number // len(COLORS) % 3]
        axis.plot(x, y, dashes, linewidth=1.4, color=color, label=name)
