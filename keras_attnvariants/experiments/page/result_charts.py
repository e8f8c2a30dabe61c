"""The page's own figures: quality against cost, differences, learning curves."""

import math
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import altair as alt

from keras_attnvariants.experiments.page.english import fixed
from keras_attnvariants.experiments.page.english import signed
from keras_attnvariants.experiments.page.summary_sentences import Ranking
from keras_attnvariants.experiments.page.summary_sentences import cost_values
from keras_attnvariants.experiments.page.summary_sentences import front
from keras_attnvariants.experiments.page.vega_charts import INK
from keras_attnvariants.experiments.page.vega_charts import MARK
from keras_attnvariants.experiments.page.vega_charts import QUIET
from keras_attnvariants.experiments.page.vega_charts import Panel
from keras_attnvariants.experiments.page.vega_charts import Point
from keras_attnvariants.experiments.page.vega_charts import data
from keras_attnvariants.experiments.page.vega_charts import svg
from keras_attnvariants.experiments.results import COSTS
from keras_attnvariants.experiments.results import ComparisonResult

# What a system is beside the baseline: by color and by shape.
VERDICTS = {
    "baseline": (INK, "diamond"),
    "better": ("var(--better)", "triangle-up"),
    "alike": ("var(--alike)", "circle"),
    "worse": ("var(--worse)", "triangle-down"),
}
# Beyond this ratio of the largest to the smallest, costs are on a logarithmic scale.
WIDE = 4.0
# In pixels: a letter, a line, and from a point to its name.
LETTER, LINE, GAP = 6.2, 14.0, 9.0


class Label(NamedTuple):
    """Where the name of a point is: its middle left, right or center, in pixels."""

    x: float
    y: float
    align: str


def quality_against_cost(
    result: ComparisonResult, rank: Ranking, cost: str, width: int, height: int
) -> str:
    """The picture at the top, as SVG of so many pixels."""
    points = [
        (name, value, rank.scores[name].mean)
        for name, value in cost_values(result, cost).items()
        if name in rank.scores
    ]
    if not points:
        return ""
    shown = COSTS[cost]
    costs, scores = [point[1] for point in points], [point[2] for point in points]
    is_log = min(costs) > 0 and max(costs) / min(costs) > WIDE
    across, up = Axis.around(costs, is_log), Axis.around(scores)
    pixels = [(across.to(c) * width, (1 - up.to(s)) * height) for _, c, s in points]
    labels = placed([point[0] for point in points], pixels, width)
    rows = []
    for (name, x, y), label in zip(points, labels, strict=True):
        color, shape = VERDICTS[rank.verdict(name)]
        spread = rank.scores[name].deviation or 0.0
        found = rank.differences.get(name)
        told = f" ({signed(found.difference)})" if found else ", the baseline"
        price = f"{fixed(x, shown.digits)} {shown.unit}"
        text = f"{name}: {fixed(y)} {rank.metric}{told}, {shown.name} {price}"
        rows.append(
            {
                "name": name,
                "x": x,
                "y": y,
                "low": y - spread,
                "high": y + spread,
                "color": color,
                "shape": shape,
                "is_far": abs(label.y - (1 - up.to(y)) * height) > LINE,
                "label_x": across.of(label.x / width),
                "label_y": up.of(1 - label.y / height),
                "align": label.align,
                "label": f"{name}{MARK}{text}",
            }
        )
    chosen = front(result, rank, cost)
    layers = layered(rows, chosen, across, up, shown.heading, rank.metric)
    title = f"{rank.metric} on {rank.test_set} against {shown.name}"
    return svg(layers.properties(width=width, height=height), title)


class Axis(NamedTuple):
    """The range of an axis."""

    low: float
    high: float
    is_log: bool = False

    @classmethod
    def around(cls, values: Sequence[float], is_log: bool = False) -> "Axis":
        """One with a margin on both sides."""
        low, high = min(values), max(values)
        if is_log:
            margin = (high / low) ** 0.08
            return cls(low / margin, high * margin, is_log)
        margin = 0.08 * (high - low) or abs(high) * 0.1 or 1.0
        return cls(low - margin, high + margin)

    def to(self, value: float) -> float:
        """Where a value is, from 0 to 1."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def of(self, place: float) -> float:
        """The value at a place."""
        if self.is_log:
            return float(self.low * (self.high / self.low) ** place)
        return self.low + place * (self.high - self.low)

    def scale(self) -> alt.Scale:
        """The same for Vega-Lite."""
        kind = {"type": "log"} if self.is_log else {"zero": False}
        return alt.Scale(domain=[self.low, self.high], nice=False, **kind)


def placed(
    names: Sequence[str], points: Sequence[tuple[float, float]], width: float
) -> list[Label]:
    """Places for names near their points, where they cover nothing if possible."""
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    labels = []
    for name, (x, y) in zip(names, points, strict=True):
        size = LETTER * len(name)
        options = [(label, box_of(label, size)) for label in around(x, y)]
        label, box = min(
            options,
            key=lambda option: (
                covered(option[1], taken, width)
                + abs(option[0].x - x) / 4
                + abs(option[0].y - y)
            ),
        )
        labels.append(label)
        taken.append(box)
    return labels


def around(x: float, y: float) -> Iterator[Label]:
    """Places near a point: beside it, and farther up and down."""
    for lines in (0, 0.8, -0.8, 1.2, -1.2, 2, -2, 3, -3, 4, -4, 5, 6, 7):
        up = y + lines * LINE
        yield Label(x + GAP, up, "left")
        yield Label(x - GAP, up, "right")
        if abs(lines) > 1:
            yield Label(x, up, "center")
            yield Label(x + 3 * GAP, up, "left")
            yield Label(x - 3 * GAP, up, "right")


def box_of(label: Label, size: float) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a name of so many pixels."""
    left = label.x - {"left": 0, "center": size / 2, "right": size}[label.align]
    return left, label.y - LINE / 2, left + size, label.y + LINE / 2


def covered(
    box: tuple[float, ...], taken: Sequence[tuple[float, ...]], width: float
) -> float:
    """How much of a box lies on others or outside of the picture, in square pixels."""
    left, top, right, bottom = box
    outside = max(0.0, -left) + max(0.0, right - width - 40)
    over = sum(
        max(0.0, min(right, other[2]) - max(left, other[0]))
        * max(0.0, min(bottom, other[3]) - max(top, other[1]))
        for other in taken
    )
    return over + outside * LINE


def layered(
    rows: list[dict[str, Any]],
    chosen: Sequence[str],
    across: Axis,
    up: Axis,
    cost: str,
    metric: str,
) -> Any:
    """Front, spreads, points and names."""
    x = alt.X("x:Q", title=cost, scale=across.scale(), axis=alt.Axis(tickCount=6))
    y = alt.Y("y:Q", title=metric, scale=up.scale(), axis=alt.Axis(tickCount=6))
    base = alt.Chart(data(rows))
    ink = alt.Color("color:N", scale=None, legend=None)
    on_front = [row for row in rows if row["name"] in chosen]
    label_x = alt.X("label_x:Q", title=cost, scale=across.scale())
    label_y = alt.Y("label_y:Q", title=metric, scale=up.scale())
    far = [row for row in rows if row["is_far"]]
    layers = [
        alt.Chart(data(far))
        .mark_rule(color=QUIET, strokeWidth=0.7, opacity=0.6, aria=False)
        .encode(x=x, y=y, x2="label_x:Q", y2="label_y:Q"),
        alt.Chart(data(on_front))
        .mark_line(color=QUIET, strokeWidth=1, strokeDash=[3, 3], aria=False)
        .encode(x=x, y=y),
        base.mark_rule(strokeWidth=1, opacity=0.5, clip=True).encode(
            x=x,
            y=alt.Y("low:Q", title=metric, scale=up.scale()),
            y2="high:Q",
            color=ink,
            description="label:N",
        ),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            x=x,
            y=y,
            color=ink,
            description="label:N",
            shape=alt.Shape("shape:N", scale=None, legend=None),
        ),
    ]
    for align in ("left", "center", "right"):
        named = [row for row in rows if row["align"] == align]
        if named:
            layers.append(
                alt.Chart(data(named))
                .mark_text(align=align, baseline="middle", fontSize=11.5, color=INK)
                .encode(x=label_x, y=label_y, text="name:N", description="label:N")
            )
    return alt.layer(*layers)


def differences(result: ComparisonResult, rank: Ranking) -> Panel | None:
    """The difference of each system to the baseline, with its interval."""
    points = []
    for name in rank.scores:
        found = rank.differences.get(name)
        if found is None:
            continue
        low, high = found.sentence_low, found.sentence_high
        label = (
            f"{name}: {signed(found.difference)} {rank.metric}, interval over "
            f"sentences {signed(low)} to {signed(high)}"
        )
        color, _ = VERDICTS[rank.verdict(name)]
        points.append(
            Point(name, found.difference, name, label, low, high, color=color)
        )
    if not points:
        return None
    title = f"{rank.metric} minus that of {result.baseline}"
    return Panel(title, "bars", points, title, "", zero=True)


QUANTITIES = {
    "validation_bleu": "validation BLEU",
    "validation_loss": "validation loss",
    "loss": "training loss",
}


def curves(result: ComparisonResult) -> Iterator[Panel]:
    """Validations and loss over the updates, a line for each run.

    Validations are drawn once more from half of the updates on, where lines are close.
    """
    half = max((run.updates for run in result.runs), default=0) / 2
    for field, title in QUANTITIES.items():
        yield from panel_of(result, field, title)
        if field.startswith("validation"):
            yield from panel_of(result, field, f"{title}, second half", half)


def panel_of(
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
        names = [system.name for system in result.systems]
        yield Panel(title, "lines", points, "updates", "", names)


def thinned(values: Sequence[Any], most: int = 60) -> list[Any]:
    """Every n-th value and the last: no more than a picture can show."""
    step = -(-len(values) // most)
    return [*values[:-1][::step], values[-1]]
