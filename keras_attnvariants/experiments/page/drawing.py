"""The pictures of analyses as panels.

A `Table` draws itself with a module: `kav.analysis.drawing`, which makes one figure of
matplotlib, or this one, which makes panels that the page shows side by side, or one
below the other on a telephone.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from keras_attnvariants.experiments.page.pictures import Panel
from keras_attnvariants.experiments.page.pictures import Point
from keras_attnvariants.experiments.page.words import fixed
from keras_attnvariants.experiments.page.words import number

Values = Sequence[tuple[float, float]]
Bounded = Sequence[tuple[float, float, float, float]]


def head_points(rows: Sequence[Any], field: str, title: str, up: str) -> list[Panel]:
    """A point for each head: its layer across, a column of its row up."""
    places = list(dict.fromkeys(row.place for row in rows))
    points = []
    for row in rows:
        shift = 0.16 * (places.index(row.place) - (len(places) - 1) / 2)
        value = getattr(row, field)
        if value is not None:
            head = f", head {row.head}" if getattr(row, "head", None) else ""
            label = f"{row.place}, layer {row.layer}{head}: {fixed(value)} {up}"
            points.append(Point(row.layer + shift, value, row.place, label))
    return [Panel("", "points", points, "layer", up, places)]


def lines(
    panels: Mapping[str, Mapping[str, Values]], across: str, up: str
) -> list[Panel]:
    """Curves by name, in panels by title."""
    bounded = {
        title: {
            name: [(x, y, None, None) for x, y in points]
            for name, points in curves.items()
        }
        for title, curves in panels.items()
    }
    return curves_of(bounded, across, up)


def intervals(
    panels: Mapping[str, Mapping[str, Bounded]], across: str, up: str
) -> list[Panel]:
    """Curves with intervals, by name, in panels by title."""
    return curves_of(panels, across, up)


def curves_of(panels: Mapping[str, Any], across: str, up: str) -> list[Panel]:
    """Panels of curves."""
    return [
        Panel(
            title,
            "lines",
            [
                Point(
                    x, y, name, labelled(name, x, y, low, high, across, up), low, high
                )
                for name, points in curves.items()
                for x, y, low, high in points
                if y is not None
            ],
            across,
            up,
            list(curves),
            zero="difference" in up,
        )
        for title, curves in panels.items()
    ]


def labelled(
    name: str,
    x: float,
    y: float,
    low: float | None,
    high: float | None,
    across: str,
    up: str,
) -> str:
    """A point in words."""
    text = f"{name}, {across} {number(x)}: {fixed(y)} {up}"
    if low is None or high is None:
        return text
    return f"{text}, interval {fixed(low)} to {fixed(high)}"


def bars(
    rows: Sequence[tuple[str, float, float, float]], title: str, up: str
) -> list[Panel]:
    """A value with its interval for each name."""
    points = []
    for name, value, low, high in rows:
        label = f"{name}: {fixed(value)}, interval {fixed(low)} to {fixed(high)}"
        points.append(Point(name, value, "", label, low, high))
    return [Panel("", "bars", points, up, "", [""])]


def heat_maps(maps: Mapping[str, Sequence[Any]], across: int) -> list[Panel]:
    """None: the browser of attention shows the weights of phrases."""
    return []
