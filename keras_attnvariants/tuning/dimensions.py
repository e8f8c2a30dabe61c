"""The values that one dimension of a search space may take."""

import json
import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keras_attnvariants.utils.checks import check_finite


@dataclass(frozen=True)
class Range:
    """Numbers between two bounds, both included.

    Attributes:
        minimum, maximum: the bounds; the values are integers if both are.
        step: distance of two values; `None` for any value.
        log: whether to draw evenly from the logarithms.

    Raises:
        ValueError: a bound is not a number, or the range is empty.
    """

    minimum: float
    maximum: float
    step: float | None = None
    log: bool = False

    def __post_init__(self) -> None:
        check_finite("minimum", self.minimum)
        check_finite("maximum", self.maximum)
        if self.minimum >= self.maximum:
            raise ValueError(
                "`minimum` must be below `maximum`. "
                f"Received: {self.minimum} and {self.maximum}"
            )
        if self.log and (self.minimum <= 0 or self.step is not None):
            raise ValueError(
                "A range with `log` must be above 0 and have no `step`. "
                f"Received: {self}"
            )

    @property
    def is_whole(self) -> bool:
        """Whether the values are integers."""
        return isinstance(self.minimum, int) and isinstance(self.maximum, int)


def to_values(name: str, given: Any) -> Range | tuple[Any, ...]:
    """A dimension from how it is written: a list, a table with bounds, or one value.

    Raises:
        ValueError: the list is empty or has a value twice, or a key is unknown.
    """
    if isinstance(given, Range):
        return given
    if isinstance(given, Mapping):
        known = {"min": "minimum", "max": "maximum", "step": "step", "log": "log"}
        if not {"min", "max"} <= given.keys() <= known.keys():
            raise ValueError(
                f"`{name}` must be a list, a value, or a table with min, max and "
                f"perhaps step or log. Received: {dict(given)}"
            )
        return Range(**{known[key]: value for key, value in given.items()})
    values = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    labels = [label(value) for value in values]
    if not values or len(set(labels)) < len(labels):
        raise ValueError(f"`{name}` must list different values. Received: {given}")
    return values


def label(value: Any) -> str:
    """The text for a value of a choice, in tables and files."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, default=repr)


def choices(values: Sequence[Any]) -> list[Any]:
    """The values in the form that keras-tuner takes: numbers, or their labels."""
    for kind in (int, float):
        if all(type(value) is kind for value in values):
            return list(values)
    return [label(value) for value in values]


def draw(hyperparameters: Any, name: str, values: Range | Sequence[Any]) -> Any:
    """Add a dimension to `keras_tuner.HyperParameters`, and return its value there.

    Returns:
        One of the values; `None` where the conditions of the dimension are not met.
    """
    if not isinstance(values, Range):
        forms = choices(values)
        stored = hyperparameters.Choice(name, forms)
        return None if stored is None else values[forms.index(stored)]
    kind = hyperparameters.Int if values.is_whole else hyperparameters.Float
    stored = kind(
        name,
        values.minimum,
        values.maximum,
        step=values.step or (1 if values.is_whole and not values.log else None),
        sampling="log" if values.log else "linear",
    )
    if stored is None:
        return None
    return int(stored) if values.is_whole else float(f"{stored:.6g}")


def ends(values: Range | Sequence[Any]) -> Sequence[Any]:
    """All values of a choice; the bounds of a range."""
    return (values.minimum, values.maximum) if isinstance(values, Range) else values


def count_points(dimensions: Sequence[Any]) -> float:
    """Number of points that keras-tuner's dimensions and their conditions span."""

    def count(dimension: Any) -> float:
        if hasattr(dimension, "min_value"):
            step = dimension.step or (type(dimension).__name__ == "Int")
            width = dimension.max_value - dimension.min_value
            return math.floor(width / step + 1e-9) + 1 if step else math.inf
        below = [
            (other, other.conditions[-1].values)
            for other in dimensions
            if other.conditions and other.conditions[-1].name == dimension.name
        ]
        return sum(
            math.prod(count(other) for other, needed in below if value in needed)
            for value in dimension.values
        )

    return math.prod(count(d) for d in dimensions if not d.conditions)
