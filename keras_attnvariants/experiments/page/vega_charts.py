"""Charts as SVG, drawn by Vega-Lite.

A chart is drawn once, when the page is written. Its colors are variables of the style
sheet, so that one drawing serves light, dark and paper. Each mark says in `aria-label`
what it is, and in `data-series` which system it belongs to: the page's script shows the
one beside the pointer, and brings the other forward.
"""

import math
import re
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import altair as alt
import vl_convert

from keras_attnvariants.experiments.page.english import printable

# Between the name of a series and the description of a mark.
MARK = "\u2063"
SERIES = tuple(f"var(--series-{number})" for number in range(7))
# Of values; `None` for what fits.
Domain = tuple[float, float] | None
DASHES = ([1, 0], [5, 3], [2, 2])
# Intervals of more lines cover each other: they are shown of what is pointed at.
MOST_BANDS = 4
INK, QUIET, GRID = "var(--ink)", "var(--quiet)", "var(--grid)"


@dataclass(frozen=True)
class Point:
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
    label: str = ""
    low: float | None = None
    high: float | None = None
    group: str = ""
    color: str = ""


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: above them.
        kind: `"lines"`, `"points"` or `"bars"`.
        points: in the order of their lines.
        across, up: labels of the axes.
        names: of all series, which decides their colors.
        zero: a line at 0 is drawn, and 0 is in sight.
    """

    title: str
    kind: str
    points: Sequence[Point]
    across: str
    up: str
    names: Sequence[str] = field(default=())
    zero: bool = False


def svg(chart: alt.TopLevelMixin, title: str) -> str:
    """A chart as SVG that takes its fonts and colors from the page.

    Args:
        chart: with a description `series + MARK + label` for each mark.
        title: what it shows, for those who do not see it.
    """
    drawn = vl_convert.vegalite_to_svg(drawable(configured(chart).to_dict()))
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
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{escaped(title)}" ', 1)


def drawable(value: Any) -> Any:
    """A value of JSON without characters that Vega-Lite ends the process for."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [drawable(item) for item in value]
    if isinstance(value, dict):
        return {key: drawable(item) for key, item in value.items()}
    return value


def escaped(text: str) -> str:
    """A text within an attribute."""
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
    )


def configured(chart: alt.TopLevelMixin) -> Any:
    """A chart in the style of the page."""
    return chart.configure(
        background="transparent",
        font="inherit",
        padding=4,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            domainColor=GRID,
            gridColor=GRID,
            ticks=False,
            labelColor=QUIET,
            labelFontSize=11,
            labelPadding=6,
            titleColor=QUIET,
            titleFontSize=11,
            titleFontWeight="normal",
            titlePadding=8,
        ),
        axisX=alt.AxisConfig(grid=False),
        axisY=alt.AxisConfig(domain=False),
    )


def panel_svg(panel: Panel, domain: Domain, width: int = 290, height: int = 190) -> str:
    """A panel as SVG; `domain` is what its values are shown in."""
    charts = {"lines": line_chart, "points": point_chart, "bars": bar_chart}
    if panel.kind == "bars":
        height = 22 * len(panel.points)
    chart = charts[panel.kind](panel, domain)
    drawn = svg(chart.properties(width=width, height=height), panel.title)
    several = len({point.series for point in panel.points}) > MOST_BANDS
    return drawn.replace('class="marks"', 'class="marks many"', 1) if several else drawn


def data(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as what a chart draws."""
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]


def data_of(panel: Panel) -> Any:
    """The points of a panel."""
    names = list(panel.names or dict.fromkeys(point.series for point in panel.points))
    return data(
        [
            {
                "x": point.x,
                "y": point.y,
                "low": point.low,
                "high": point.high,
                "line": f"{point.series}{MARK}{point.group}",
                "color": point.color or SERIES[names.index(point.series) % len(SERIES)],
                "dash": names.index(point.series) // len(SERIES) % len(DASHES),
                "label": f"{point.series}{MARK}{point.label or point.series}",
            }
            for point in panel.points
            if math.isfinite(point.y)
        ]
    )


def scale_of(domain: Domain) -> alt.Scale:
    """The scale of values."""
    if domain is None:
        return alt.Scale(zero=False)
    return alt.Scale(domain=list(domain), nice=True, zero=False)


def color() -> alt.Color:
    """The color of a point, which is part of it."""
    return alt.Color("color:N", scale=None, legend=None)


def across(panel: Panel) -> alt.X:
    """Positions from left to right."""
    axis = alt.Axis(title=panel.across, tickCount=5, tickMinStep=1)
    return alt.X("x:Q", axis=axis, scale=alt.Scale(zero=False, padding=6))


def up(panel: Panel, domain: Domain, name: str = "y") -> alt.Y:
    """Positions from bottom to top, by a field of the data."""
    axis = alt.Axis(title=panel.up or None, tickCount=5)
    return alt.Y(f"{name}:Q", axis=axis, scale=scale_of(domain))


def line_chart(panel: Panel, domain: Domain) -> Any:
    """A line for each group of each series, with its interval if there is one."""
    base = alt.Chart(data_of(panel)).encode(
        x=across(panel), color=color(), description="label:N"
    )
    dash = alt.StrokeDash(
        "dash:O", scale=alt.Scale(domain=[0, 1, 2], range=DASHES), legend=None
    )
    y = up(panel, domain)
    layers = [
        base.mark_line(strokeWidth=1.6, strokeJoin="round", clip=True).encode(
            y=y, detail="line:N", strokeDash=dash
        )
    ]
    if any(point.low is not None for point in panel.points):
        band = base.mark_area(clip=True).encode(
            y=up(panel, domain, "low"), y2="high:Q", detail="line:N"
        )
        dots = base.mark_point(filled=True, size=22, opacity=1).encode(y=y)
        layers = [band.properties(name="bands"), *layers, dots]
    if panel.zero:
        layers.insert(0, zero_line())
    return alt.layer(*layers)


def zero_line() -> alt.Chart:
    """A line at 0."""
    rule = alt.Chart(data([{"y": 0}]))
    return rule.mark_rule(color=QUIET, strokeWidth=1, aria=False).encode(y="y:Q")


def point_chart(panel: Panel, domain: Domain) -> Any:
    """A point for each value."""
    return (
        alt.Chart(data_of(panel))
        .mark_point(filled=True, size=44, opacity=0.75)
        .encode(
            x=across(panel),
            y=up(panel, domain),
            color=color(),
            description="label:N",
        )
    )


def bar_chart(panel: Panel, domain: Domain) -> Any:
    """A point with its interval for each name, one below the other."""
    rows = alt.Y(
        "x:N",
        sort=None,  # as the data are
        axis=alt.Axis(title=None, labelColor=INK, labelLimit=150, domain=False),
    )
    axis = alt.Axis(title=panel.across, grid=True, tickCount=5)
    base = alt.Chart(data_of(panel)).encode(
        y=rows, color=color(), description="label:N"
    )
    layers = [
        base.mark_rule(strokeWidth=2, opacity=0.55).encode(
            x=alt.X("low:Q", axis=axis, scale=scale_of(domain)), x2="high:Q"
        ),
        base.mark_point(filled=True, size=54, opacity=1).encode(
            x=alt.X("y:Q", axis=axis, scale=scale_of(domain))
        ),
    ]
    if panel.zero:
        rule = alt.Chart(data([{"zero": 0}]))
        layers.insert(
            0, rule.mark_rule(color=QUIET, strokeWidth=1, aria=False).encode(x="zero:Q")
        )
    return alt.layer(*layers)
