"""A search space: the dimensions of a search, declared as data."""

import contextlib
import itertools
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from typing import Any
from typing import NamedTuple

from keras_attnvariants.presets import Preset
from keras_attnvariants.training.training_config import TrainingConfig
from keras_attnvariants.training.training_config import with_schedule
from keras_attnvariants.tuning.dimensions import ALL
from keras_attnvariants.tuning.dimensions import PLACES
from keras_attnvariants.tuning.dimensions import Candidate
from keras_attnvariants.tuning.dimensions import Range
from keras_attnvariants.tuning.dimensions import candidates
from keras_attnvariants.tuning.dimensions import check_flag
from keras_attnvariants.tuning.dimensions import configuration
from keras_attnvariants.tuning.dimensions import count_points
from keras_attnvariants.tuning.dimensions import covering
from keras_attnvariants.tuning.dimensions import draw
from keras_attnvariants.tuning.dimensions import ends
from keras_attnvariants.tuning.dimensions import to_values
from keras_attnvariants.utils.checks import check_known
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.checks import check_table

# The training settings that may be searched.
TRAINING = (
    "learning_rate",
    "warmup_steps",
    "batch_tokens",
    "label_smoothing",
    "clipnorm",
    "beta_1",
    "beta_2",
    "epsilon",
)
TABLES = ("sizes", "training", "attention", "systems")
PARTS = (*TABLES, "per_layer")
# The dimensions that count something.
COUNTS = ("num_layers", "num_decoder_layers", "batch_tokens")
# Largest number of size combinations that are checked before a search starts, besides
# those that cover each size once.
CHECKED = 64


class TrialArguments(NamedTuple):
    """A point of a space as arguments of `train_preset`.

    Attributes:
        sizes: options of the model.
        settings: fields of `TrainingConfig`.
        batch_tokens: positions of an update; `None` for the preset's.
    """

    sizes: dict[str, Any]
    settings: dict[str, Any]
    batch_tokens: int | None = None


@dataclass(frozen=True)
class SearchSpace:
    """The dimensions that vary between trials; the preset decides the rest.

    A dimension is a list of values, a `Range`, or one value that differs from the
    preset's and is not searched.

    Attributes:
        sizes: by option of the preset or argument of the model: `num_layers`,
            `hidden_dim`, `dropout`, …
        training: by name: `learning_rate` (the highest rate of a linear rise and an
            inverse square-root decay) and `warmup_steps` of that rise, `batch_tokens`,
            `label_smoothing`, `clipnorm`, `beta_1`, `beta_2`, `epsilon`.
        attention: by role (`encoder`, `decoder`, `cross`): `"all"`, every variant with
            each of its registered examples; or a list of names of variants, with the
            first example that fits, and of tables with a `variant` and its constructor
            arguments. `"none"` leaves the sub-layer out.
        per_layer: whether attention is chosen separately for each layer.
        systems: by name, a table of named sets of sizes, one of which is chosen.

    Raises:
        ValueError: a name is unknown, a dimension is empty, a table or `per_layer` is
            something else, a number of layers or tokens is no positive integer, or a
            training setting is out of its range.

    Example:

    >>> from keras_attnvariants import presets
    >>> space = SearchSpace(
    ...     sizes={"num_layers": [2, 4]},
    ...     attention={"encoder": [
    ...         "DotProductAttention", {"variant": "LocalAttention", "n": [3, 5, 7]}]},
    ... )
    >>> space.points(presets.get("kav/base/multi30k"))
    8
    """

    sizes: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    attention: Mapping[str, Any] = field(default_factory=dict)
    per_layer: bool = False
    systems: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in TABLES:
            check_table(part, getattr(self, part))
        check_flag("per_layer", self.per_layer)
        for name, systems in self.systems.items():
            check_table(f"systems.{name}", systems)
            for system, sizes in systems.items():
                check_table(f"systems.{name}.{system}", sizes)
        for name in self.training:
            check_known("`training`", name, TRAINING)
        for place, given in self.attention.items():
            check_known("`attention`", place, PLACES)
            candidates(place, given)
        if not any((self.sizes, self.training, self.attention, self.systems)):
            raise ValueError("A search space must have a dimension. Received: none")
        for name, values in (*self.sizes.items(), *self.training.items()):
            for value in ends(to_values(name, values)):
                if name in COUNTS:
                    check_optional_integer(name, value)
                elif name in self.training:
                    settings = {"learning_rate": 1e-3, name: value}
                    TrainingConfig(steps=1, **with_schedule(settings))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "SearchSpace":
        """A space from the tables of a file.

        Raises:
            ValueError: a key is unknown; the message names the nearest one.
        """
        for part in values:
            check_known("`space`", part, PARTS)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """The space as a dict whose `repr` differs from that of any other space."""
        return {part: getattr(self, part) for part in PARTS if getattr(self, part)}

    def with_training(self, **values: Any) -> "SearchSpace":
        """The same space with these values of `training` in all its points.

        Raises:
            ValueError: a name is unknown, or a dimension of the space.
        """
        if twice := sorted(self.training.keys() & values.keys()):
            raise ValueError(
                f"The space already has the dimension {', '.join(twice)}. "
                f"Received: {values}"
            )
        return replace(self, training={**self.training, **values})

    def hyperparameters(self, preset: Preset) -> Any:
        """All dimensions, as `keras_tuner.HyperParameters`."""
        from keras_tuner import HyperParameters

        hyperparameters = HyperParameters()
        self.draw(preset, hyperparameters)
        return hyperparameters

    def arguments(self, preset: Preset, stored: Mapping[str, Any]) -> TrialArguments:
        """A point of the space as arguments of `train_preset`.

        Args:
            preset: the preset that is searched.
            stored: values by the names of `hyperparameters`.
        """
        from keras_tuner import HyperParameters

        hyperparameters = HyperParameters()
        hyperparameters.values = dict(stored)
        return self.draw(preset, hyperparameters)

    def draw(self, preset: Preset, hyperparameters: Any) -> TrialArguments:
        """Add all dimensions to hyperparameters, and return the point of their values.

        Args:
            preset: the preset that is searched.
            hyperparameters: `keras_tuner.HyperParameters`.
        """
        sizes: dict[str, Any] = {}
        for name, systems in self.systems.items():
            sizes.update(systems[hyperparameters.Choice(name, list(systems))])
        drawn = [
            {name: draw(hyperparameters, name, to_values(name, v)) for name, v in part}
            for part in (self.sizes.items(), self.training.items())
        ]
        sizes, training = sizes | drawn[0], drawn[1]
        for role, given in self._candidates(preset).items():
            layers = []
            for name, condition in self._layers(role, preset).items():
                scope: Any = contextlib.nullcontext()
                if condition:
                    scope = hyperparameters.conditional_scope(*condition)
                with scope:
                    layer = draw_attention(hyperparameters, name, given)
                if layer is not None:
                    layers.append(configuration(*layer, sizes, preset))
            sizes[PLACES[role]] = layers if self.per_layer else layers[0]
        batch_tokens = training.pop("batch_tokens", None)
        return TrialArguments(sizes, with_schedule(training), batch_tokens)

    def points(self, preset: Preset) -> float:
        """Number of different points, which may be infinite."""
        return count_points(self.hyperparameters(preset).space)

    def check(self, preset: Preset, vocabulary_size: int | None = None) -> None:
        """Check that every dimension can be built, without allocating arrays.

        Raises:
            ValueError: a variant, an option or a size does not fit the preset.
        """
        self.hyperparameters(preset)  # keras-tuner checks the ranges
        some = self._some_sizes()
        for sizes in some:
            preset.check(vocabulary_size, **sizes)
        for systems in self.systems.values():
            for system in systems.values():
                preset.check(vocabulary_size, **some[0], **system)
        for role, given in self._candidates(preset).items():
            for entry in given:
                for arguments in entry.corners():
                    layer = configuration(entry.variant, arguments, some[0], preset)
                    preset.check(vocabulary_size, **{**some[0], PLACES[role]: layer})

    def _candidates(self, preset: Preset) -> dict[str, list[Candidate]]:
        """The candidates of each place, with the examples that fit."""
        found: dict[str, list[Candidate]] = {}
        for role, given in self.attention.items():
            found[role], most = [], None if given == ALL else 1
            for entry in candidates(role, given):
                fitting = self._fitting(preset, role, entry)[:most]
                if fitting or not entry.examples:
                    found[role].append(replace(entry, examples=tuple(fitting)))
                elif given != ALL:
                    raise ValueError(
                        f"{entry.variant} of `attention.{role}` has no registered "
                        "example that fits the sizes of the model: give its options. "
                        f"Received: {given}"
                    )
        return found

    def _fitting(
        self, preset: Preset, role: str, entry: Candidate
    ) -> list[Mapping[str, Any]]:
        """The examples of a candidate that fit the sizes of the model."""
        found = []
        for arguments in entry.examples:
            with contextlib.suppress(ValueError):
                for sizes in self._some_sizes():
                    layer = configuration(entry.variant, arguments, sizes, preset)
                    preset.check(**{**sizes, PLACES[role]: layer})
                found.append(arguments)
        return found

    def _some_sizes(self) -> list[dict[str, Any]]:
        """Combinations of sizes or ends of ranges, with each of them at least once."""
        values = {name: ends(to_values(name, v)) for name, v in self.sizes.items()}
        first = itertools.islice(itertools.product(*values.values()), CHECKED)
        some = [dict(zip(values, sizes, strict=True)) for sizes in first]
        return some + covering(values)

    def _layers(
        self, role: str, preset: Preset
    ) -> dict[str, tuple[str, list[int]] | None]:
        """Names and conditions of the choices of a place, one or one per layer."""
        if not self.per_layer:
            return {role: None}
        depth = "num_layers"
        if role != "encoder" and preset.options.get("num_decoder_layers"):
            depth = "num_decoder_layers"
        if depth not in self.sizes:
            return {f"{role}/{i}": None for i in range(preset.options[depth])}
        values = to_values(depth, self.sizes[depth])
        counts: Sequence[int] = ends(values)
        if isinstance(values, Range):
            counts = range(counts[0], counts[1] + 1)
        return {
            f"{role}/{i}": (depth, [n for n in counts if n > i])
            for i in range(max(counts))
        }


def draw_attention(
    hyperparameters: Any, name: str, given: Sequence[Candidate]
) -> tuple[str, dict[str, Any]] | None:
    """Add the choice between variants, and the options of the chosen one.

    Returns:
        The variant and its options; `None` if there is no such layer.
    """
    chosen = hyperparameters.Choice(name, [entry.variant for entry in given])
    found = {}
    for entry in given:
        with hyperparameters.conditional_scope(name, [entry.variant]):
            found[entry.variant] = entry.draw(hyperparameters, name)
    return None if chosen is None else (chosen, found[chosen])
