"""Charts as SVG, drawn by Vega-Lite from the specifications in `specs/`.

A chart is drawn once, when the page is written. Its colors are variables of the style
sheet, so that one drawing serves light, dark and paper. Each mark says in `aria-label`
what it is, and in `data-series` which system it belongs to: the page's script shows the
one beside the pointer, and brings the other forward.
"""

import html
import math
import re
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import vl_convert
from jinja2 import Environment
from jinja2 import PackageLoader
from jinja2 import StrictUndefined

from keras_attnvariants.experiments.page.english import printable

SPECS = Environment(
    loader=PackageLoader(__package__, "specs"),
    undefined=StrictUndefined,
    autoescape=False,  # noqa: S701 (JSON)
)
# Between the name of a series and the description of a mark.
MARK = "\u2063"
SERIES = tuple(f"var(--series-{number})" for number in range(7))
DASHES = ((1, 0), (5, 3), (2, 2))
# Intervals of more lines cover each other: they are shown of what is pointed at.
MOST_BANDS = 4


class Point(NamedTuple):
    """One value.

    Attributes:
        x, y: where it is; `x` may be a name.
        series: what it belongs to.
        label: what it is, in words.
        low, high: its interval.
        group: the line within the series, such as a seed.
        color: instead of that of the series.
    """

    x: float | str
    y: float
    series: str
    label: str
    low: float | None = None
    high: float | None = None
    group: str = ""
    color: str = ""


class Panel(NamedTuple):
    """One pair of axes.

    Attributes:
        title: above them.
        kind: `"lines"`, `"points"` or `"bars"`.
        points: in the order of their lines.
        across, up: labels of the axes.
        zero: whether a line at 0 is drawn.
    """

    title: str
    kind: str
    points: Sequence[Point]
    across: str
    up: str = ""
    zero: bool = False


def look(names: Sequence[str], name: str) -> tuple[str, int]:
    """The color of a series among those with these names, and its number in `DASHES`.

    >>> look(["a", "b"], "b")
    ('var(--series-1)', 0)
    """
    dashes, color = divmod(list(names).index(name), len(SERIES))
    return SERIES[color], dashes % len(DASHES)


def common_range(panels: Sequence[Panel]) -> tuple[float, float] | None:
    """The range of the values of all panels, with their intervals; `None` for none."""
    points = [point for panel in panels for point in panel.points]
    values = [v for p in points for v in (p.y, p.low, p.high) if v is not None]
    return (min(values), max(values)) if values else None


def draw_panel(
    panel: Panel,
    names: Sequence[str],
    values: tuple[float, float] | None = None,
    width: int = 290,
    height: int = 190,
) -> str:
    """A panel as SVG.

    Args:
        panel: what to draw.
        names: names of all series, which decide their colors.
        values: range of the values to show; by default what fits.
        width, height: size of the axes, in pixels; bars have a height of their own.
    """
    rows = []
    for point in panel.points:
        if math.isfinite(point.y):
            color, dash = look(names, point.series)
            row = {
                **point._asdict(),
                "line": f"{point.series}{MARK}{point.group}",
                "color": point.color or color,
                "dash": dash,
                "label": f"{point.series}{MARK}{point.label}",
            }
            rows.append(row)
    drawn = draw(
        panel.kind,
        panel.title,
        rows,
        across=panel.across,
        up=panel.up,
        scale={"zero": False}
        if values is None
        else {"zero": False, "nice": True, "domain": values},
        zero=panel.zero,
        has_intervals=any(point.low is not None for point in panel.points),
        dashes=DASHES,
        width=width,
        height=height,
    )
    several = len({point.series for point in panel.points}) > MOST_BANDS
    return drawn.replace('class="marks"', 'class="marks many"', 1) if several else drawn


def draw(
    kind: str, title: str, rows: Sequence[Mapping[str, Any]], **values: Any
) -> str:
    """A chart as SVG that takes its fonts and colors from the page.

    Args:
        kind: name of its specification.
        title: what it shows, for those who do not see it.
        rows: its data; a mark is described by `series + MARK + label`.
        values: what else the specification needs.
    """
    # Vega-Lite ends the process for characters that a page may not hold.
    values = writable({"rows": rows, **values})
    drawn = vl_convert.vegalite_to_svg(
        SPECS.get_template(f"{kind}.json").render(values)
    )
    drawn = re.sub(r'<path class="(?:back|fore)ground"[^>]*? d=""[^>]*/>', "", drawn)
    drawn = re.sub(r'<text[^>]*opacity="0"[^>]*>[^<]*</text>', "", drawn)
    drawn = re.sub(r' (?:font-family="inherit"|opacity="1")', "", drawn)
    drawn = re.sub(r' role="graphics-\w+"| aria-roledescription="[^"]*"', "", drawn)
    drawn = re.sub(
        rf'aria-label="([^"{MARK}]*){MARK}([^"]*)"',
        r'data-series="\1" aria-label="\2"',
        drawn,
    )
    drawn = re.sub(r' width="\d+" height="\d+"', "", drawn, count=1)
    label = f'<svg role="img" aria-label="{html.escape(title)}" '
    return drawn.replace("<svg ", label, 1)


def writable(value: Any) -> Any:
    """A value of JSON with a sign for each character that a page may not hold."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {key: writable(item) for key, item in value.items()}
    return [writable(item) for item in value] if isinstance(value, list) else value
