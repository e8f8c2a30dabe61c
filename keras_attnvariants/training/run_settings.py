"""The settings and the vocabulary of a run, read and compared when it is resumed."""

import json
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import NamedTuple

import keras

from keras_attnvariants.data import Corpus
from keras_attnvariants.data import tasks
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.data.vocabularies import learn_vocabulary
from keras_attnvariants.training.optimizers import NoamSchedule
from keras_attnvariants.training.run_models import BEST
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.training.training_config import TrainingConfig
from keras_attnvariants.training.training_config import faster_precision
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import NotPlainFileError
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.files import read_file
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import replace_file

CONFIG = "config.json"
# Beside the settings: the machine that started or resumed the training.
MACHINE = "machine"
STATES = "state"

# Entries of a model's configuration that do not change what it computes: names, which
# differ in every process; wiring, which follows from layers; how to decode.
VOLATILE = {
    *("name", "build_config", "compile_config", "shared_object_id"),
    *("inbound_nodes", "input_layers", "output_layers", "search_settings"),
}

# Differences that an error lists; it counts the others.
_SHOWN = 6


class Difference(NamedTuple):
    """A setting in which two runs differ.

    Attributes:
        name: name of the argument; dotted for an argument of a layer or a schedule.
        old: its value in the run on disk.
        new: its value in the call that would resume the run.
    """

    name: str
    old: Any
    new: Any


class DifferentSettingsError(ValueError):
    """The folder holds a run with other settings.

    Args:
        place: the folder.
        differences: the settings that differ.
    """

    problem = (
        "{} holds a run with other settings: give those to resume it, or choose "
        "another folder"
    )

    def __init__(self, place: Path | int, differences: Sequence[Difference]) -> None:
        self.place = place
        self.differences = tuple(differences)
        super().__init__(self.message({}))

    def message(self, options: Mapping[str, str]) -> str:
        """One line with old and new values.

        Args:
            options: the name of an argument for the user, by its name in Python.
        """
        parts = [
            f"{options.get(name, f'`{name}`')} {_short(new)} instead of {_short(old)}"
            for name, old, new in self.differences
        ]
        if len(parts) > _SHOWN:
            parts[_SHOWN:] = [f"and {len(parts) - _SHOWN} more"]
        return f"{self.problem.format(self.place)}. Received: {', '.join(parts)}"


def describe_run(
    model: keras.Model, tokenizer: Tokenizer | None, config: TrainingConfig
) -> dict[str, Any]:
    """The settings of a run, as JSON."""
    return {
        # Backends keep the seeds of dropout in different forms.
        "backend": keras.backend.backend(),
        "training": config.to_dict(),
        "model": describe_model(model),
        "tokenizer": None if tokenizer is None else tokenizer.sha256,
    }


def describe_model(model: keras.Model) -> Any:
    """The configuration of a model without volatile entries."""
    config = keras.saving.serialize_keras_object(model)
    config.pop("compile_config", None)  # JSON may not hold it
    return json.loads(
        json.dumps(config),
        object_hook=lambda values: {k: values[k] for k in values if k not in VOLATILE},
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
    except NotPlainFileError:
        raise
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
    changeable = (("training", name) for name in TrainingConfig.FREE_TO_CHANGE)
    # Revisions may differ, because the sentences themselves are compared.
    free = [(MACHINE,), ("training", "data", "revision"), *changeable]
    if different := differences_of(saved, given, free):
        raise DifferentSettingsError(run_dir, different)


def differences_of(
    saved: Mapping[str, Any],
    given: Mapping[str, Any],
    free: Sequence[tuple[str, ...]] = (),
) -> list[Difference]:
    """The differences between the settings of two runs, by the names of arguments.

    Args:
        saved, given: the settings.
        free: paths of entries that may differ.
    """
    found = [
        Difference(_argument(path), old, new)
        for path, old, new in _differences(saved, given)
        if path not in free
    ]
    # A different preset explains all other differences.
    presets = [difference for difference in found if difference.name == "preset"]
    # One argument may be that of many layers.
    return list({repr(found): found for found in presets or found}.values())


def _differences(
    saved: Any, given: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Path, old and new value of each entry in which two JSON values differ."""
    if path == ("training", "learning_rate"):
        saved, given = _arguments_of_rate(saved), _arguments_of_rate(given)
    if isinstance(saved, list) and isinstance(given, list) and len(saved) == len(given):
        saved, given = (
            {str(i): item for i, item in enumerate(values)} for values in (saved, given)
        )
    if not (isinstance(saved, dict) and isinstance(given, dict)):
        if saved != given:
            yield path, saved, given
        return
    for key in sorted({*saved, *given}):
        # A class is identified by its name, whatever its module. An argument that did
        # not exist when the run began is off, or has the only value of that time.
        is_off = key not in saved and given[key] in (False, tasks.DEFAULT)
        if path[:1] != ("model",) or not (key == "module" or is_off):
            yield from _differences(saved.get(key), given.get(key), (*path, key))


def _arguments_of_rate(value: Any) -> dict[str, Any]:
    """A serialized learning rate by the names of arguments."""
    rate = keras.saving.deserialize_keras_object(value)
    if isinstance(rate, NoamSchedule):
        return {"learning_rate": rate.peak, "warmup_steps": rate.warmup_steps}
    if isinstance(value, dict):
        return {"learning_rate": value["class_name"], **value["config"]}
    return {"learning_rate": value}


def _argument(path: tuple[str, ...]) -> str:
    """The name of the argument that decides an entry of the settings."""
    names = [key for key in path if key != "config" and not key.isdigit()]
    # The class of a layer goes by the name of its place; options go by their own.
    return ".".join(names[-2:]) if names[-1] == "class_name" else names[-1]


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def run_precision(saved: Mapping[str, Any]) -> str:
    """The precision of a run; for a new one, the faster on this machine."""
    return str(saved["training"]["precision"]) if saved else faster_precision()


def run_tokenizer(
    run_dir: Path,
    saved: Mapping[str, Any],
    corpus: Corpus,
    vocabulary_size: int,
    subwords: Mapping[str, Any],
    may_shrink: bool = False,
) -> Tokenizer:
    """The tokenizer of a run, trained on the training split if the run is new.

    With `may_shrink`, it may have fewer tokens than `vocabulary_size`.

    Raises:
        DamagedFolderError: the file is not the one that the run was started with.
        DifferentSettingsError: the run has a vocabulary of another size.
    """
    path = run_dir / TOKENIZER
    if not path.is_file():
        return learn_vocabulary(
            corpus, vocabulary_size, may_shrink=may_shrink, **subwords
        )
    check_tokenizer(run_dir, saved)
    tokenizer = Tokenizer(read_file(path))
    old = tokenizer.vocabulary_size
    if old > vocabulary_size or (old < vocabulary_size and not may_shrink):
        difference = Difference("vocabulary_size", old, vocabulary_size)
        raise DifferentSettingsError(run_dir, [difference])
    return tokenizer


def check_tokenizer(run_dir: Path, settings: Mapping[str, Any]) -> None:
    """Raises unless the tokenizer of a run is the one that its settings name, if any.

    Raises:
        DamagedFolderError: it is another one.
        FileNotFoundError: there is none.
    """
    path, written = run_dir / TOKENIZER, settings.get("tokenizer")
    if written is not None and (found := file_entry(path)["sha256"]) != written:
        raise DamagedFolderError(
            f"{path} is not what was written: restore it from a copy, such as the one "
            f"in {run_dir / BEST}. Received: sha256 {found}, not {written}"
        )


def prepare_vocabulary(
    folder: Path,
    corpus: Corpus,
    vocabulary_size: int,
    subwords: Mapping[str, Any],
    tokenizer: Tokenizer | None = None,
) -> None:
    """Learns the vocabulary that several runs share, unless the folder has one.

    Args:
        folder: the parent folder of the runs.
        corpus, vocabulary_size, subwords, tokenizer: as for `train_preset`.

    Raises:
        ValueError: the folder has another vocabulary than that of `tokenizer`.
    """
    path = folder / TOKENIZER
    if not path.is_file():
        tokenizer = tokenizer or learn_vocabulary(corpus, vocabulary_size, **subwords)
        replace_file(path, tokenizer.model_bytes)
    elif tokenizer and file_entry(path)["sha256"] != tokenizer.sha256:
        raise ValueError(
            "Runs that begin with a model use its vocabulary, but the folder has "
            f"another one: choose another folder. Received: {folder}"
        )


def copy_vocabulary(folder: Path, run: Path) -> None:
    """Copies the vocabulary of a folder into a run, or folder, that has none."""
    run.mkdir(parents=True, exist_ok=True)
    if not (run / TOKENIZER).exists():
        replace_file(run / TOKENIZER, (folder / TOKENIZER).read_bytes())
