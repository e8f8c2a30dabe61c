"""Finds, identifies and loads trained models by name or folder."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal

from keras_attnvariants.trained import find_model
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.importing import import_tensorflow

if TYPE_CHECKING:
    import keras

    from keras_attnvariants import Tokenizer
    from keras_attnvariants import Translator
    from keras_attnvariants.data import tasks

Precision = Literal["float32", "bfloat16", "int8"]

# Largest number of hypotheses in a search, unless one sentence has more.
MAX_HYPOTHESES = 512

# Numbers of texts that are translated at once.
BATCH_SIZES = (1, 8, 32, 64)

# Kinds of folders, and files of which each kind has one.
RUN = "the folder of a run, with log.jsonl"
MODEL = f"{RUN}, or of a model, with {MANIFEST}"
SAVED = "a folder with saved_model.pb, or one of numbered versions of it"
KINDS = {
    RUN: ["log.jsonl"],
    MODEL: ["log.jsonl", MANIFEST],
    SAVED: ["saved_model.pb", "[0-9]*/saved_model.pb"],
}


def check_place(name: str, folder: Path, kind: str) -> None:
    """Checks early that a folder seems to be of a kind.

    Args:
        name: the option or argument.
        folder: its value.
        kind: one of `KINDS`.

    Raises:
        FileNotFoundError: it is not; the message says which file it should have.
    """
    if not any(any(folder.glob(pattern)) for pattern in KINDS[kind]):
        raise FileNotFoundError(f"`{name}` must be {kind}. Received: {folder}")


def model_folder(argument: str, name: str) -> Path:
    """The folder of a run, or of a model by its path, name or address.

    Args:
        argument: the option or argument.
        name: its value, see `keras_attnvariants.trained.find_model`.

    Raises:
        FileNotFoundError: there is no such model; the message lists similar names, or
            the file that the folder should have.
        ValueError, FetchError: as for `find_model`.
    """
    folder = find_model(name, argument)
    check_place(argument, folder, MODEL)
    return folder


def model_task(folder: Path) -> str:
    """The task of the model of a run or of a model folder.

    An adapter does not state its task: it is for models that translate.
    """
    path = folder / "config.json"
    if path.is_file():
        # If it is not a model, loading it says what is wrong.
        with suppress(AttributeError, KeyError, TypeError):
            config = read_json(path)
            config = config.get("model", config)["config"]
            return str(config.get("task", "translation"))
    return "translation"


def same_task(folders: dict[str, Path]) -> "tasks.Task":
    """The common task of models.

    Raises:
        ValueError: they have different tasks.
    """
    from keras_attnvariants.data import tasks

    found = {name: model_task(folder) for name, folder in folders.items()}
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} for {task}" for name, task in found.items())
        raise ValueError(f"The models must be for the same task. Received: {listed}")
    return tasks.get(next(iter(found.values())))


def short_names(models: list[str]) -> dict[str, Path]:
    """The folders of models by the last parts of their paths, or by their names.

    Paths with equal last parts are not shortened.

    Raises:
        FileNotFoundError: there is no such model.
        ValueError: one is given twice.
    """
    if len(set(models)) < len(models):
        raise ValueError(f"Give each model once. Received: {', '.join(models)}")
    last = [Path(x).resolve().name if os.path.exists(x) else x for x in models]
    return {
        model if last.count(name) > 1 else name: model_folder("--model", model)
        for name, model in zip(last, models, strict=True)
    }


def model_digest(folder: Path) -> str:
    """Digest of the manifests of a run's models, of a model folder or of a SavedModel.

    For several versions of a SavedModel, it covers all of them.
    """
    manifests = sorted([*folder.glob(MANIFEST), *folder.glob(f"*/{MANIFEST}")])
    return hashlib.sha256(b"".join(map(Path.read_bytes, manifests))).hexdigest()


def load(
    folder: Path, precision: Precision | None = None
) -> tuple["keras.Model", "Tokenizer"]:
    """The model of a run or of a model folder, in a precision, and its tokenizer.

    Raises:
        FileNotFoundError: there is no model.
        ValueError: a file has changed since it was saved, a class is unknown, or the
            model does not translate or has no tokenizer.
    """
    import_tensorflow()
    import keras_attnvariants as kav

    is_run = (folder / "log.jsonl").is_file()
    load = kav.training.load_run if is_run else kav.load_model
    model, tokenizer = load(folder)
    if tokenizer is None or not hasattr(model, "initial_state"):
        raise ValueError(
            "The folder must hold a model that translates, with its tokenizer.model. "
            f"Received: {folder}, with a {type(model).__name__}"
        )
    return (model if precision is None else in_precision(model, precision)), tokenizer


def in_precision(model: "keras.Model", precision: Precision) -> "keras.Model":
    """The same model, computing in a precision.

    Around products of integers it always computes in float32, because the rounding of
    bfloat16 depends on the processor.
    """
    from keras_attnvariants.models.templates import with_policy
    from keras_attnvariants.serving.precision import POLICIES
    from keras_attnvariants.serving.precision import with_integers

    if precision == "int8":
        return with_integers(model, "float32")
    return with_policy(model, POLICIES[precision])


def translator_of(
    model: "keras.Model", tokenizer: "Tokenizer", **options: Any
) -> "Translator":
    """A translator that searches for fewer texts at once if the beam is wide.

    The memory of a search grows with the number of hypotheses. XLA is off: compiling
    every shape would take longer than a test set.
    """
    import keras_attnvariants as kav

    made = kav.Translator(model, tokenizer, xla=False, **options)
    fitting = (n for n in BATCH_SIZES if n * made.beam_size <= MAX_HYPOTHESES)
    made.batch_sizes = tuple(fitting) or (1,)
    return made
