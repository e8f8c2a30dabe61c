"""The page's own figures: quality against cost, differences, learning curves."""

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attnvariants.experiments.page.charts import MARK
from keras_attnvariants.experiments.page.charts import Panel
from keras_attnvariants.experiments.page.charts import Point
from keras_attnvariants.experiments.page.charts import draw
from keras_attnvariants.experiments.page.english import fixed
from keras_attnvariants.experiments.page.english import signed
from keras_attnvariants.experiments.page.ranking import Ranking
from keras_attnvariants.experiments.page.ranking import cost_values
from keras_attnvariants.experiments.result_parts import COSTS
from keras_attnvariants.experiments.results import ComparisonResult

# What a system is beside the baseline: by color and by shape.
VERDICTS = {
    "baseline": ("var(--ink)", "diamond"),
    "better": ("var(--better)", "triangle-up"),
    "alike": ("var(--alike)", "circle"),
    "worse": ("var(--worse)", "triangle-down"),
}
QUANTITIES = {
    "validation_bleu": "validation BLEU",
    "validation_loss": "validation loss",
    "loss": "training loss",
}
# Beyond this ratio of the largest to the smallest, costs are on a logarithmic scale.
WIDE = 4.0
# In pixels: a letter, a line, and from a point to its name.
LETTER, LINE, GAP = 6.2, 14.0, 9.0


# The ways from a point to the left, right or center of its name: beside it, and farther
# up and down.
OFFSETS = [
    (dx, lines * LINE, align)
    for lines in (0, 0.8, -0.8, 1.2, -1.2, 2, -2, 3, -3, 4, -4, 5, 6, 7)
    for dx, align in (
        (GAP, "left"),
        (-GAP, "right"),
        (0, "center"),
        (3 * GAP, "left"),
        (-3 * GAP, "right"),
    )
    if abs(lines) > 1 or abs(dx) == GAP
]
# The part of a name that is left of that end of the way.
SHARES = {"left": 0.0, "center": 0.5, "right": 1.0}


def quality_against_cost(rank: Ranking, cost: str, width: int, height: int) -> str:
    """The picture at the top, as SVG of so many pixels."""
    costs = cost_values(rank.result).get(cost, {})
    names = [name for name in costs if name in rank.scores]
    if not names:
        return ""
    shown, front = COSTS[cost], rank.front(cost)
    across = [costs[name] for name in names]
    up = [rank.scores[name].mean for name in names]
    is_log = min(across) > 0 and max(across) / min(across) > WIDE
    across_domain, x = axis(across, is_log)
    up_domain, y = axis(up)
    pixels = np.stack([x * width, (1 - y) * height], axis=1)
    chosen, _ = placed(names, pixels, width)
    rows = []
    for name, number in zip(names, chosen, strict=True):
        dx, dy, align = OFFSETS[number]
        score, found = rank.scores[name], rank.differences.get(name)
        color, shape = VERDICTS[rank.verdict(name)]
        spread = score.deviation or 0.0
        told = f" ({signed(found.difference)})" if found else ", the baseline"
        price = f"{fixed(costs[name], shown.digits)} {shown.unit}"
        text = f"{fixed(score.mean)} {rank.metric}{told}, {shown.name} {price}"
        row = {
            "name": name,
            "x": costs[name],
            "y": score.mean,
            "low": score.mean - spread,
            "high": score.mean + spread,
            "color": color,
            "shape": shape,
            "label": f"{name}{MARK}{name}: {text}",
            "dx": dx,
            "dy": dy,
            "align": align,
            "is_far": abs(dy) > LINE,
            "is_front": name in front,
        }
        rows.append(row)
    return draw(
        "overview",
        f"{rank.metric} on {rank.test_set} against {shown.name}",
        rows,
        across=shown.heading,
        across_type="log" if is_log else "linear",
        across_domain=across_domain,
        up=rank.metric,
        up_domain=up_domain,
        width=width,
        height=height,
    )


def axis(
    values: Sequence[float], is_log: bool = False
) -> tuple[list[float], np.ndarray]:
    """An axis with a margin on both sides, and where on it values are.

    Returns:
        The lowest and the highest value of the axis, and the places from 0 to 1.
    """
    places = np.log(values) if is_log else np.array(values)
    margin = 0.08 * np.ptp(places) or 0.1 * abs(places[0]) or 1.0
    ends = np.array([places.min() - margin, places.max() + margin])
    domain = np.exp(ends) if is_log else ends
    return domain.tolist(), (places - ends[0]) / np.ptp(ends)


def placed(
    names: Sequence[str], points: np.ndarray, width: float
) -> tuple[list[int], np.ndarray]:
    """Places for names near their points, where they cover nothing if possible.

    Args:
        names: names of the points.
        points: in pixels, `[points, 2]`.
        width: width of the picture.

    Returns:
        For each name the number of its offset, and its box: left, top, right and
        bottom, `[points, 4]`.
    """
    dx, dy = np.array([offset[:2] for offset in OFFSETS]).T
    shares = np.array([SHARES[align] for *_, align in OFFSETS])
    taken = np.hstack([points - 6, points + 6])
    chosen = []
    for name, (x, y) in zip(names, points, strict=True):
        size = LETTER * len(name)
        left, top = x + dx - shares * size, y + dy - LINE / 2
        boxes = np.stack([left, top, left + size, top + LINE], axis=1)
        sides = np.minimum(boxes[:, None, 2:], taken[:, 2:])
        sides -= np.maximum(boxes[:, None, :2], taken[:, :2])
        covered = np.maximum(sides, 0).prod(-1).sum(-1)
        outside = np.maximum(-left, 0) + np.maximum(left + size - width - 40, 0)
        costs = covered + LINE * outside + np.abs(dx) / 4 + np.abs(dy)
        chosen.append(int(costs.argmin()))
        taken = np.vstack([taken, boxes[chosen[-1]]])
    return chosen, taken[len(points) :]


def differences(rank: Ranking) -> Panel | None:
    """The difference of each system to the baseline, with its interval."""
    points = []
    for name, found in rank.differences.items():
        low, high = found.sentence_low, found.sentence_high
        label = (
            f"{name}: {signed(found.difference)} {rank.metric}, interval over "
            f"sentences {signed(low)} to {signed(high)}"
        )
        color, _ = VERDICTS[rank.verdict(name)]
        points.append(
            Point(name, found.difference, name, label, low, high, color=color)
        )
    title = f"{rank.metric} minus that of {rank.result.baseline}"
    return Panel(title, "bars", points, title, zero=True) if points else None


def curves(result: ComparisonResult) -> Iterator[Panel]:
    """Validations and loss over the updates, a line for each run.

    Validations are drawn once more from half of the updates on, where lines are close.
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


def thinned(values: Sequence[Any], most: int = 60) -> list[Any]:
    """Every n-th value and the last: no more than a picture can show."""
    step = -(-len(values) // most)
    return [*values[:-1][::step], values[-1]]
