"""Pictures of tables, drawn with matplotlib."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

import numpy as np

from keras_attnvariants.evaluation.attention_maps import INK
from keras_attnvariants.utils.records import grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# In inches: size of a panel, and height of a bar.
PANEL, BAR = (4.5, 3.2), 0.3
COLORS = ("#4a78a8", "#c44e52", "#55a868", "#8172b3", "#cc8b3c", "#64b5cd")


class Point(NamedTuple):
    """One value.

    Attributes:
        x, y: coordinates; `x` may be a name.
        series: name of its series.
        label: description, if `series` and `x` do not suffice.
        low, high: its interval.
        group: the line within the series, such as a seed.
        color, shape: override those of the series.
        is_front: whether a line connects it with other such points.
    """

    x: Any
    y: float
    series: str
    label: str = ""
    low: float | None = None
    high: float | None = None
    group: str = ""
    color: str = ""
    shape: str = ""
    is_front: bool = False


class Panel(NamedTuple):
    """One pair of axes.

    Attributes:
        title: title above the axes.
        kind: see `Drawing`; the page of a comparison has `"overview"` too.
        points: in the order of their lines.
        across, up: labels of the axes.
        zero: whether a line at 0 is drawn.
        is_log: whether the scale of `x` is logarithmic.
    """

    title: str
    kind: str
    points: Sequence[Point]
    across: str
    up: str = ""
    zero: bool = False
    is_log: bool = False


class Drawing(NamedTuple):
    """The picture of a table, by the names of its columns.

    Attributes:
        y: column of the values; rows without one are left out.
        up: label of the vertical axis.
        x: column; rows without one are left out.
        across: label of the horizontal axis: for bars, that of the values.
        kind: `"points"`, one for each head beside or above its layer; `"lines"`; or
            `"bars"`, one below the other.
        panel, curve: names of the panel and the curve of a row, with its columns as
            `{row.column}`. Points for all heads together form a separate curve.
        interval: columns with the ends of the interval.
        x_end: column of the end of a bin that begins at `x`; the middle is shown.
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

    def panels(self, rows: Iterable[Any], title: str) -> list[Panel]:
        """The panels of the picture.

        Args:
            rows: rows of the table.
            title: title of panels without a name.
        """
        found: dict[str, list[Point]] = {}
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
            point = Point(x, y, curve, label, low, high)
            found.setdefault(self.panel.format(row=row), []).append(point)
        if self.kind == "points":
            found = {name: side_by_side(points) for name, points in found.items()}
        return [
            Panel(name or title, self.kind, points, self.across, self.up)
            for name, points in found.items()
        ]


def side_by_side(points: Sequence[Point]) -> list[Point]:
    """The points, with the series shifted sideways so that they do not overlap."""
    names = list(grouped(points, "series"))
    shifts = {n: 0.16 * (i - (len(names) - 1) / 2) for i, n in enumerate(names)}
    return [point._replace(x=point.x + shifts[point.series]) for point in points]


def draw_panels(panels: Sequence[Panel]) -> "Figure":
    """A figure with the panels side by side."""
    from matplotlib.figure import Figure

    width, height = PANEL[0] * len(panels), PANEL[1]
    bars = [p.points for p in panels if p.kind == "bars"]
    if bars:
        width, height = 2 * width, BAR * max(map(len, bars)) + 1.2
    figure = Figure(figsize=(width, height), layout="constrained")
    for axis, panel in zip(
        figure.subplots(1, len(panels), squeeze=False).flat, panels, strict=True
    ):
        curves = grouped(panel.points, "series")
        for number, (name, points) in enumerate(curves.items()):
            draw_curve(axis, panel.kind, number, name, points)
        decorate(axis, panel.title, panel.across, panel.up)
        if panel.kind != "bars":
            axis.legend(frameon=False, fontsize=8)
    return figure


def draw_curve(
    axis: Any, kind: str, number: int, name: str, points: Sequence[Point]
) -> None:
    """Draws points, a line with its interval, or bars with theirs."""
    x, y, low, high = zip(*((p.x, p.y, p.low, p.high) for p in points), strict=True)
    color = COLORS[number % len(COLORS)]
    if kind == "bars":
        errors = np.abs(np.subtract([low, high], y)).tolist()
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


def decorate(axis: Any, title: str, across: str, up: str) -> None:
    """Adds title, axis labels and grid, and makes the axes unobtrusive."""
    from matplotlib.ticker import MaxNLocator

    axis.set_title(title, fontsize=10, color=INK, loc="left")
    axis.set_xlabel(across, fontsize=9, color=INK)
    axis.set_ylabel(up, fontsize=9, color=INK)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axis.grid(color="0.92")
    axis.tick_params(length=0, labelsize=8, labelcolor=INK)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color("0.8")
