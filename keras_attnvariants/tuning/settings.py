"""The settings of a search: checked, written into its folder, compared later."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants.training.runs import describe_data
from keras_attnvariants.tuning.trials import Trials
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.packages import check_extra

SETTINGS = "search.json"
METHODS = ("random", "bayesian", "hyperband")
NEEDED = ("keras_tuner", "tensorboard")
# What differs if another corpus is given.
CONTENTS = ("train_sentences", "validation_sentences", "alignments")
# A search may be given more trials.
FREE_TO_CHANGE = ("max_trials",)


def describe(trials: Trials, **oracle: Any) -> dict[str, Any]:
    """What decides the result of a search, in a form that JSON can hold.

    Args:
        trials: what its trials share.
        **oracle: what decides which points are tried.
    """
    options = trials.preset.options
    settings = {
        **{f"preset.{name}": value for name, value in options.items()},
        "space": trials.space.to_dict(),
        "budget": dataclasses.asdict(trials.budget),
        "objective": trials.objective,
        "seeds": trials.seeds,
        "vocabulary_size": trials.vocabulary_size,
        "settings": trials.settings,
        "precision": trials.precision,
        **oracle,
        **describe_data({}, trials.preset, trials.corpus, trials.subwords),
    }
    return json.loads(json.dumps(settings, default=serialized))


def serialized(value: Any) -> Any:
    """What JSON has no form for: a schedule by its configuration."""
    if hasattr(value, "get_config"):
        return keras.saving.serialize_keras_object(value)
    return repr(value)


def write_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write the settings of a search into its folder."""
    text = json.dumps(settings, indent=1)
    write_file(folder / SETTINGS, f"{text}\n".encode())


def check_same_search(folder: Path, given: Mapping[str, Any]) -> None:
    """Raises unless the folder holds no search, or one with these settings.

    Raises:
        ValueError: a setting other than a higher number of trials differs.
    """
    path = folder / SETTINGS
    if not path.exists():
        return
    saved = read_json(path)
    differing = [
        name
        for name in dict.fromkeys((*saved, *given))
        if name not in FREE_TO_CHANGE and saved.get(name) != given.get(name)
    ]
    if any(name in CONTENTS for name in differing):
        raise ValueError(
            f"{folder} holds a search on another corpus: give that, or choose another "
            f"folder. Received: another content of {', '.join(differing)}"
        )
    for name in differing:
        raise ValueError(
            f"{folder} holds a search with another `{name}`: give that, or choose "
            f"another folder. Received: {given.get(name)!r:.60} instead of "
            f"{saved.get(name)!r:.60}"
        )


def check_packages(method: str) -> None:
    """Raises unless the packages of a method are installed.

    Raises:
        ValueError: says how to install what is missing.
    """
    needed = (*NEEDED, "sklearn") if method == "bayesian" else NEEDED
    check_extra("A search", "tune", needed)
