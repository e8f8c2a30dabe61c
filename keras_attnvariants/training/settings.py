"""The settings of a run in its folder: read, and compared when the run is resumed."""

import json
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import NamedTuple

import keras

from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.training.config import TrainingConfig
from keras_attnvariants.training.schedules import NoamSchedule
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_json

CONFIG = "config.json"
STATES = "state"

# Beyond these an error only counts.
_SHOWN = 6


class Difference(NamedTuple):
    """A setting in which two runs differ.

    Attributes:
        name: name of the argument, or of the layer's or schedule's in a dotted name.
        old: its value in the run on disk.
        new: its value in the call that would resume the run.
    """

    name: str
    old: Any
    new: Any


class DifferentSettingsError(ValueError):
    """The folder holds a run with other settings.

    Attributes:
        run_dir: the folder.
        differences: what differs.
    """

    def __init__(self, run_dir: Path, differences: Sequence[Difference]) -> None:
        self.run_dir = run_dir
        self.differences = tuple(differences)
        super().__init__(self.message({}))

    def message(self, options: Mapping[str, str]) -> str:
        """One line with old and new values.

        Args:
            options: what the user calls an argument, by its name.
        """
        parts = [
            f"{options.get(name, f'`{name}`')} {_short(new)} instead of {_short(old)}"
            for name, old, new in self.differences
        ]
        if len(parts) > _SHOWN:
            parts[_SHOWN:] = [f"and {len(parts) - _SHOWN} more"]
        return self._told(", ".join(parts))

    def _told(self, received: str) -> str:
        return (
            f"{self.run_dir} holds a run with other settings: give those to resume it, "
            f"or choose another folder. Received: {received}"
        )


def read_settings(run_dir: Path) -> dict[str, Any]:
    """The settings of a run: `"training"`, `"model"` and, as sha256, `"tokenizer"`.

    Returns:
        The settings; an empty dict if the folder holds no run, or one that has not
        saved a state yet and whose settings cannot be read.

    Raises:
        DamagedFolderError: there are saved states, but no settings that can be read.
    """
    path = run_dir / CONFIG
    try:
        settings = read_json(path)
        if {"training", "model"} <= settings.keys():
            return settings
        problem = f"{CONFIG} is incomplete. Received: {path}"
    except (DamagedFolderError, AttributeError) as error:
        problem = str(error)
    if not TrainingState(run_dir / STATES).paths():
        return {}
    raise DamagedFolderError(
        "The settings of a run must be restored from a copy, or the training started "
        "again in another folder; the models in best/ and averaged/ do not need them: "
        f"{problem}"
    )


def check_same_run(
    run_dir: Path, saved: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Raises unless a run on disk has the settings of the call that would resume it.

    Raises:
        DifferentSettingsError: they differ.
    """
    free = [("training", name) for name in TrainingConfig.FREE_TO_CHANGE]
    if different := differences_of(saved, given, free):
        raise DifferentSettingsError(run_dir, different)


def differences_of(
    saved: Mapping[str, Any],
    given: Mapping[str, Any],
    free: Sequence[tuple[str, ...]] = (),
) -> list[Difference]:
    """What differs between the settings of two runs, by the names of arguments.

    Args:
        saved, given: the settings.
        free: paths of entries that may differ.
    """
    found = []
    for path, old, new in _differences(saved, given):
        if path in free:
            continue
        if path[:2] == ("training", "learning_rate"):
            rates = (run["training"]["learning_rate"] for run in (saved, given))
            found.extend(_rate_differences(*rates))
        else:
            found.append(Difference(_argument(path), old, new))
    # All that a preset decides differs with it.
    presets = [difference for difference in found if difference.name == "preset"]
    # One argument may be that of many layers.
    distinct = {repr(difference): difference for difference in presets or found}
    return list(distinct.values())


def describe_run(
    model: keras.Model, tokenizer: Tokenizer | None, config: TrainingConfig
) -> dict[str, Any]:
    """The settings of a run, as JSON."""
    return {
        "training": config.to_dict(),
        "model": describe_model(model),
        "tokenizer": None if tokenizer is None else tokenizer.sha256,
    }


def describe_model(model: keras.Model) -> Any:
    """The configuration of a model without names, which differ in every process."""
    config = keras.saving.serialize_keras_object(model)
    return json.loads(json.dumps(_without_names(config)))


def _without_names(value: Any) -> Any:
    volatile = (
        *("name", "build_config", "compile_config", "shared_object_id"),
        "search_settings",  # decoding does not change the updates
    )
    wiring = ("inbound_nodes", "input_layers", "output_layers")
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in (*volatile, *wiring)}
        return {key: _without_names(item) for key, item in kept.items()}
    if isinstance(value, (list, tuple)):
        return [_without_names(item) for item in value]
    return value


def _differences(
    saved: Any, given: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Path, old and new value of each entry in which two JSON values differ."""
    if isinstance(saved, list) and isinstance(given, list) and len(saved) == len(given):
        saved, given = (
            {str(i): item for i, item in enumerate(values)} for values in (saved, given)
        )
    if not (isinstance(saved, dict) and isinstance(given, dict)):
        if saved != given:
            yield path, saved, given
        return
    for key in sorted({*saved, *given}):
        yield from _differences(saved.get(key), given.get(key), (*path, key))


def _argument(path: tuple[str, ...]) -> str:
    """The name of the argument that decides an entry of the settings."""
    names = [key for key in path if key != "config" and not key.isdigit()]
    # A class by its place, an option of a layer as the presets call it.
    return ".".join(names[-2:]) if names[-1] == "class_name" else names[-1]


def _rate_differences(old: Any, new: Any) -> list[Difference]:
    """What differs between two serialized learning rates."""
    rates = (old, new)
    first, second = map(keras.saving.deserialize_keras_object, rates)
    if isinstance(first, NoamSchedule) and isinstance(second, NoamSchedule):
        return [
            Difference(name, before, after)
            for name, before, after in (
                ("learning_rate", first.peak, second.peak),
                ("warmup_steps", first.warmup_steps, second.warmup_steps),
            )
            if before != after
        ] or [Difference("learning_rate", old["config"], new["config"])]
    kinds = [rate["class_name"] if isinstance(rate, dict) else rate for rate in rates]
    if kinds[0] != kinds[1]:
        return [Difference("learning_rate", *kinds)]
    return [Difference(_argument(p), *values) for p, *values in _differences(*rates)]


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
