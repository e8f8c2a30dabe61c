"""The dimensions of a search space: values, and variants of attention with options."""

import functools
import json
import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keras.saving import serialize_keras_object as serialized

from keras_attnvariants.attention import variants
from keras_attnvariants.attention.registry import get
from keras_attnvariants.presets import Preset
from keras_attnvariants.presets.preset import PLACES as ARGUMENTS
from keras_attnvariants.presets.preset import attention_layers
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.checks import check_known
from keras_attnvariants.utils.checks import check_positive

# Arguments of `Transformer` by the role of the layers in them.
PLACES = {name.removesuffix("_attention"): name for name in ARGUMENTS}
# Instead of a name: the sub-layer is left out.
NONE = "none"
# Instead of a list: every registered variant that fits the place.
ALL = "all"

# Arguments that the sizes of the model and the corpus determine.
FROM_MODEL = {"num_heads": "num_heads", "hidden_dim": "intermediate_dim"}
NOT_SEARCHED = (*FROM_MODEL, "key_dim", "value_dim", "length_ratio")
INITIALIZERS = ("kernel_initializer", "output_initializer")


@dataclass(frozen=True)
class Range:
    """Numbers between two bounds, both included.

    Attributes:
        minimum, maximum: the bounds; the values are integers if both are.
        step: distance between two values; `None` for any value.
        log: whether to draw evenly from the logarithms.

    Raises:
        ValueError: both `log` and `step` are given.
    """

    minimum: float
    maximum: float
    step: float | None = None
    log: bool = False

    def __post_init__(self) -> None:
        # keras-tuner checks the bounds.
        if self.log and self.step is not None:
            raise ValueError(
                f"A range with `log` must have no `step`. Received: {self}"
            )

    @property
    def is_whole(self) -> bool:
        """Whether the values are integers."""
        return isinstance(self.minimum, int) and isinstance(self.maximum, int)


def to_values(name: str, given: Any) -> Range | tuple[Any, ...]:
    """A dimension from its declaration: a list, a table with bounds, or one value.

    Raises:
        ValueError: the list is empty or has a value twice, a key is unknown, a bound or
            step is no number, or `log` is neither true nor false.
    """
    if isinstance(given, Mapping):
        known = {"min": "minimum", "max": "maximum", "step": "step", "log": "log"}
        if not {"min", "max"} <= given.keys() <= known.keys():
            raise ValueError(
                f"`{name}` must be a list, a value, or a table with min, max and "
                f"perhaps step or log. Received: {dict(given)}"
            )
        given = Range(**{known[key]: value for key, value in given.items()})
    if isinstance(given, Range):
        check_finite(f"{name}.min", given.minimum)
        check_finite(f"{name}.max", given.maximum)
        if given.step is not None:
            check_positive(f"{name}.step", given.step)
        check_flag(f"{name}.log", given.log)
        return given
    values = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    labels = [label(value) for value in values]
    if not values or len(set(labels)) < len(labels):
        raise ValueError(f"`{name}` must list different values. Received: {given}")
    return values


def check_flag(name: str, value: Any) -> None:
    """Raises `ValueError` unless a value is true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` must be true or false. Received: {value!r}")


def label(value: Any) -> str:
    """The text for a value of a choice, in tables and files."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, default=repr)


def choices(values: Sequence[Any]) -> list[Any]:
    """The values in the form that keras-tuner takes: numbers, or their labels."""
    if set(map(type, values)) in ({int}, {float}):
        return list(values)
    return [label(value) for value in values]


def draw(hyperparameters: Any, name: str, values: Range | Sequence[Any]) -> Any:
    """Add a dimension to `keras_tuner.HyperParameters`, and return its value.

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
        step=values.step,
        sampling="log" if values.log else "linear",
    )
    if stored is None:
        return None
    return int(stored) if values.is_whole else float(f"{stored:.6g}")


def ends(values: Range | Sequence[Any]) -> Sequence[Any]:
    """All values of a choice; the bounds of a range."""
    return (values.minimum, values.maximum) if isinstance(values, Range) else values


def covering(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """As few combinations of values as have each of them at least once."""
    count = max(map(len, values.values()), default=0)
    return [{k: v[i % len(v)] for k, v in values.items()} for i in range(count)]


def count_points(dimensions: Sequence[Any]) -> float:
    """Number of points in the space of keras-tuner's dimensions and conditions."""

    def count(dimension: Any) -> float:
        values = dimension.values
        if getattr(dimension, "step", 1) is None:  # then these are only examples
            if isinstance(dimension.min_value, float):
                return math.inf
            values = range(dimension.min_value, dimension.max_value + 1)
        below = [
            (other, other.conditions[-1].values)
            for other in dimensions
            if other.conditions and other.conditions[-1].name == dimension.name
        ]
        return sum(
            math.prod(count(other) for other, needed in below if value in needed)
            for value in values
        )

    return math.prod(count(d) for d in dimensions if not d.conditions)


@dataclass(frozen=True)
class Candidate:
    """A variant that may be used in a place.

    Attributes:
        variant: name of its class, or `"none"` for no sub-layer.
        options: values of constructor arguments, searched one by one.
        examples: sets of constructor arguments, one of which is chosen.
    """

    variant: str
    options: Mapping[str, Range | Sequence[Any]]
    examples: tuple[Mapping[str, Any], ...] = ()

    def draw(self, hyperparameters: Any, name: str) -> Any:
        """Add the options below the choice `name`, and return their values."""
        start = f"{name}/{self.variant}"
        if len(self.examples) > 1:
            return draw(hyperparameters, f"{start}/options", self.examples)
        fixed = dict(self.examples[0]) if self.examples else {}
        return fixed | {
            option: draw(hyperparameters, f"{start}/{option}", values)
            for option, values in self.options.items()
        }

    def corners(self) -> list[dict[str, Any]]:
        """Sets of arguments in which every option value and every example occurs."""
        values = {name: ends(options) for name, options in self.options.items()}
        return [*covering(values), *map(dict, self.examples)] or [{}]


def candidates(role: str, given: Any) -> tuple[Candidate, ...]:
    """The candidates of a place from their declaration.

    Args:
        role: `"encoder"`, `"decoder"` or `"cross"`.
        given: `"all"`, for every variant with each of its registered examples; or a
            list of names of variants, for the first example that fits, and of tables
            with the name as `variant` and further constructor arguments.

    Raises:
        ValueError: a name is unknown or occurs twice, or an entry is neither a name nor
            a table.
    """
    if given == ALL:
        given = list(variants(role))
    if not isinstance(given, (list, tuple)):
        given = [given]
    found = tuple(candidate(role, entry) for entry in given)
    names = [entry.variant for entry in found]
    if not found or len(set(names)) < len(names):
        raise ValueError(
            f"`attention.{role}` must list different variants. Received: {names}"
        )
    return found


def candidate(role: str, given: str | Mapping[str, Any]) -> Candidate:
    """One candidate from its declaration; a name alone stands for its examples."""
    table = dict(given) if isinstance(given, Mapping) else {"variant": given}
    name = table.pop("variant", None)
    if name == NONE:
        return Candidate(NONE, {})
    if not isinstance(name, str):
        raise ValueError(
            f"`attention.{role}` must list names of variants, and tables with a "
            f"`variant`. Received: {given}"
        )
    get(name)
    if not table:
        return Candidate(name, {}, examples(name, role))
    for key in table:
        check_known(f"`{name}`", key, constructor_arguments(name))
    return Candidate(name, {key: to_values(key, table[key]) for key in table})


def examples(name: str, role: str) -> tuple[Mapping[str, Any], ...]:
    """The registered examples for a role, without arguments set by sizes or corpus."""
    found = get(name)
    searched = [
        {
            key: list(value) if isinstance(value, tuple) else serialized(value)
            for key, value in found.examples[number].items()
            if key not in NOT_SEARCHED
        }
        for number in found.fitting(role)
    ]
    distinct = {repr(sorted(example.items())): example for example in searched}
    return tuple(distinct.values())


@functools.cache
def constructor_arguments(name: str) -> tuple[str, ...]:
    """The names of all arguments of a variant that Keras serializes."""
    found = get(name)
    return tuple(found.cls(**found.examples[0]).get_config())


def configuration(
    name: str, arguments: Mapping[str, Any], sizes: Mapping[str, Any], preset: Preset
) -> dict[str, Any] | None:
    """A variant in the form of a layer serialized by Keras.

    Args:
        name: name of the variant, or `"none"`.
        arguments: constructor arguments that were chosen.
        sizes: options of the model in this trial.
        preset: the preset, whose initializers and other options are used.
    """
    if name == NONE:
        return None
    sizes = {**preset.options, **sizes}
    found = {key: sizes[size] for key, size in FROM_MODEL.items() if size in sizes}
    found |= initializers(preset)
    taken = {k: v for k, v in found.items() if k in constructor_arguments(name)}
    return layer_config(name, **{**taken, **arguments})


def initializers(preset: Preset) -> dict[str, Any]:
    """The initializers of learned attention in a preset that differ from Keras'."""
    configs = [layer["config"] for layer in attention_layers(preset.config)]
    found = ({key: c[key] for key in INITIALIZERS if key in c} for c in configs)
    return next(filter(None, found), {})
