"""Charts of the results as SVG, drawn by Vega-Lite from the specifications in `specs/`.

A chart is drawn once, when the page is written. Its colors are variables of the style
sheet, so that one drawing serves light mode, dark mode and printing. The `aria-label`
of a mark describes it, and `data-series` names its system: the page's script shows the
former beside the pointer, and brings the latter forward.
"""

import html
import math
import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import vl_convert
from jinja2 import Environment
from jinja2 import PackageLoader
from jinja2 import StrictUndefined

from keras_attnvariants.analysis.pictures import Panel
from keras_attnvariants.analysis.pictures import Point
from keras_attnvariants.experiments.page.english import fixed
from keras_attnvariants.experiments.page.english import printable
from keras_attnvariants.experiments.page.english import signed
from keras_attnvariants.experiments.page.ranking import Ranking
from keras_attnvariants.experiments.page.ranking import cost_values
from keras_attnvariants.experiments.result_parts import COSTS
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.experiments.results import Difference
from keras_attnvariants.utils.records import grouped

SPECS = Environment(
    loader=PackageLoader(__package__, "specs"),
    undefined=StrictUndefined,
    autoescape=False,  # noqa: S701 (JSON)
)
# Between the name of a series and the description of a mark.
SERIES_END = "\u2063"
SERIES = tuple(f"var(--series-{number})" for number in range(7))
DASHES = ((1, 0), (5, 3), (2, 2))
# With more lines, intervals overlap: only that of the line pointed at is shown.
MOST_BANDS = 4


# The color and the shape of a system by its verdict against the baseline.
VERDICTS = {
    "baseline": ("var(--ink)", "diamond"),
    "better": ("var(--better)", "triangle-up"),
    "alike": ("var(--alike)", "circle"),
    "worse": ("var(--worse)", "triangle-down"),
}
QUANTITIES = {
    "validation_score": "validation score",
    "validation_loss": "validation loss",
    "loss": "training loss",
}
# Beyond this ratio of the largest to the smallest, costs are on a logarithmic scale.
LOG_SCALE_RATIO = 4.0
# Most points of a line, besides the last.
POINTS_PER_LINE = 60
# Output of Vega-Lite that the page does not need, and its marks of a series.
CLEANING = {
    r'<path class="(?:back|fore)ground"[^>]*? d=""[^>]*/>': "",
    r'<text[^>]*opacity="0"[^>]*>[^<]*</text>': "",
    r' (?:font-family="inherit"|opacity="1")': "",
    r' role="graphics-\w+"| aria-roledescription="[^"]*"': "",
    rf'aria-label="([^"{SERIES_END}]*){SERIES_END}([^"]*)"': (
        r'data-series="\1" aria-label="\2"'
    ),
}


def style_of(names: Sequence[str], name: str) -> tuple[str, int]:
    """The color of a series among those with these names, and its number in `DASHES`.

    >>> style_of(["a", "b"], "b")
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
        values: range of the values to show; by default the one that fits.
        width, height: size of the axes, in pixels; bars have their own height.
    """
    rows = []
    for point in panel.points:
        if math.isfinite(point.y):
            color, dash = style_of(names, point.series)
            row = {
                **point._asdict(),
                "line": f"{point.series}{SERIES_END}{point.group}",
                "color": point.color or color,
                "dash": dash,
                "label": f"{point.series}{SERIES_END}{point.label}",
            }
            rows.append(writable(row))
    specification = SPECS.get_template(f"{panel.kind}.json").render(
        writable(panel._asdict()),
        rows=rows,
        scale={"zero": False} | ({"nice": True, "domain": values} if values else {}),
        has_intervals=any(point.low is not None for point in panel.points),
        dashes=DASHES,
        width=width,
        height=height,
    )
    drawn = vl_convert.vegalite_to_svg(specification)
    for pattern, replacement in CLEANING.items():
        drawn = re.sub(pattern, replacement, drawn)
    drawn = re.sub(r' width="\d+" height="\d+"', "", drawn, count=1)
    label = f'<svg role="img" aria-label="{html.escape(panel.title)}" '
    drawn = drawn.replace("<svg ", label, 1)
    several = len({point.series for point in panel.points}) > MOST_BANDS
    return drawn.replace('class="marks"', 'class="marks many"', 1) if several else drawn


def writable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values whose texts have U+FFFD for each character that HTML does not allow.

    Vega-Lite ends the process at such characters.
    """
    return {k: printable(v) if isinstance(v, str) else v for k, v in values.items()}


def quality_against_cost(rank: Ranking, cost: str) -> Panel | None:
    """The chart at the top: a point per system, with its verdict as the shape."""
    shown, front, points = COSTS[cost], rank.front(cost), []
    costs = cost_values(rank.result).get(cost, {})
    for name in filter(rank.scores.__contains__, costs):
        score, found = rank.scores[name], rank.differences.get(name)
        spread = score.deviation or 0.0
        diff = f" ({signed(found.difference)})" if found else ", the baseline"
        price = f"{fixed(costs[name], shown.digits)} {shown.unit}"
        text = f"{name}: {fixed(score.mean)} {rank.metric}{diff}, {shown.name} {price}"
        point = Point(
            costs[name],
            score.mean,
            name,
            text,
            score.mean - spread,
            score.mean + spread,
            shape=VERDICTS[rank.verdict(name)][1],
            is_front=name in front,
        )
        points.append(point)
    if not points:
        return None
    title = f"{rank.metric} on {rank.test_set} against {shown.name}"
    known = [costs[point.series] for point in points]
    is_log = min(known) > 0 and max(known) / min(known) > LOG_SCALE_RATIO
    axes = shown.heading, rank.metric
    return Panel(title, "overview", points, *axes, is_log=is_log)


def difference(x: Any, found: Difference, where: str = "", color: str = "") -> Point:
    """A difference with its interval."""
    low, high, over = found.interval
    label = (
        f"{found.system}{where}: {signed(found.difference)} {found.metric}, interval "
        f"over {over} {signed(low)} to {signed(high)}"
    )
    return Point(x, found.difference, found.system, label, low, high, color=color)


def differences(rank: Ranking) -> Panel | None:
    """The difference of each system from the baseline, with its interval."""
    points = [
        difference(name, found, color=VERDICTS[rank.verdict(name)][0])
        for name, found in rank.differences.items()
    ]
    title = f"{rank.metric} minus that of {rank.result.baseline}"
    return Panel(title, "bars", points, title, zero=True) if points else None


def curves(result: ComparisonResult) -> Iterator[Panel]:
    """Validations and loss over the updates, a line for each run.

    A second panel of validations begins at half of the updates, where lines are close.
    """
    half = max((run.updates for run in result.runs), default=0) / 2
    for field, title in QUANTITIES.items():
        yield from curve(result, field, title)
        if field.startswith("validation"):
            yield from curve(result, field, f"{title}, second half", half)


def curve(
    result: ComparisonResult, field: str, title: str, first: float = 0
) -> Iterator[Panel]:
    """A panel of a field of the log from an update on, if any run has it."""
    points = []
    for run in result.runs:
        values = [
            (point.update, value)
            for point in run.curve
            if point.update >= first and (value := getattr(point, field)) is not None
        ]
        if values:
            last = f"{fixed(values[-1][1])} after {values[-1][0]:,} updates"
            label = f"{run.system}, seed {run.seed}: {last}"
            points += [
                Point(x, y, run.system, label, group=str(run.seed))
                for x, y in thinned(values)
            ]
    if points:
        yield Panel(title, "lines", points, "updates")


def points(result: ComparisonResult) -> Iterator[Panel]:
    """The difference of each system from the baseline over the budget."""
    for test, rows in grouped(result.points, "test_set").items():
        drawn = [
            difference(100 * row.share, found, f" at {row.share:.0%}")
            for row in rows
            for found in row.differences
        ]
        if drawn:
            title = f"{result.metrics[0]} on {test} minus that of {result.baseline}"
            yield Panel(title, "lines", drawn, "% of the budget", zero=True)


def thinned(values: Sequence[Any]) -> list[Any]:
    """Every n-th value and the last: no more than a chart can show."""
    step = -(-len(values) // POINTS_PER_LINE)
    return [*values[:-1][::step], values[-1]]
