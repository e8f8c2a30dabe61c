"""Health of runs, models, SavedModels and corpora: damage, and what still works.

Problems are found by the checks of the commands, and reported in their words. Nothing
is changed. A corpus is read through the cache, as for training.
"""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_attnvariants.cli.commands import one_line
from keras_attnvariants.cli.doctor import DAMAGED
from keras_attnvariants.cli.doctor import NOTE
from keras_attnvariants.cli.doctor import OK
from keras_attnvariants.cli.doctor import Diagnosis
from keras_attnvariants.cli.doctor import Finding
from keras_attnvariants.cli.models import model_task
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data import tasks
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.data.model_folders import WEIGHTS
from keras_attnvariants.data.model_folders import read_model
from keras_attnvariants.serving.folders import saved_models
from keras_attnvariants.serving.saved import SavedTranslator
from keras_attnvariants.trained import load_model
from keras_attnvariants.trained.names import ADAPTER
from keras_attnvariants.training.progress import read_log
from keras_attnvariants.training.run_models import AVERAGED
from keras_attnvariants.training.run_models import BEST
from keras_attnvariants.training.run_models import CHECKPOINTS
from keras_attnvariants.training.run_models import LOG
from keras_attnvariants.training.run_models import read_weights
from keras_attnvariants.training.run_settings import CONFIG
from keras_attnvariants.training.run_settings import STATES
from keras_attnvariants.training.run_settings import check_tokenizer
from keras_attnvariants.training.run_settings import read_settings
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.training.state import numbered
from keras_attnvariants.training.state import read_state
from keras_attnvariants.utils.folders import names_in


def examine(
    place: str, languages: tuple[str, str] | None = None, task: str = tasks.DEFAULT
) -> Diagnosis:
    """Examines a run, a model, a SavedModel or a corpus.

    Args:
        place: the folder of a run, a model or a SavedModel; or a corpus, as for
            `load_corpus`.
        languages: the endings of the files of a corpus, needed for a corpus.
        task: name of what the corpus is for.

    Raises:
        ValueError: there is nothing to examine.
    """
    path = Path(place)
    if any((path / name).exists() for name in (LOG, STATES, CHECKPOINTS)):
        return examine_run(path)
    if saved_models(path):
        return examine_saved_model(path)
    if any((path / name).is_file() for name in (WEIGHTS, CONFIG, ADAPTER)):
        return examine_model(path)
    if languages is not None:
        return examine_corpus(place, languages, task)
    raise ValueError(
        "Give the folder of a run, a model or a SavedModel, or a corpus with --source "
        f"and --target, or with --task. Received: {place}"
    )


def examined(
    name: str, check: Callable[..., Any], *arguments: Any, advice: str = ""
) -> Finding:
    """The finding of a check, which returns a description or raises."""
    try:
        found = check(*arguments)
    except (ValueError, OSError, TypeError, RecursionError) as error:
        return Finding(DAMAGED, name, one_line(str(error)), advice)
    return Finding(OK, name, found if isinstance(found, str) else "intact")


def use(option: str, folder: Path, command: str) -> str:
    """The command that uses a model."""
    return shlex.join(["kav", command, option, str(folder)])


def use_model(folder: Path) -> str:
    """The command that uses a model by its folder."""
    return use("--model", folder, tasks.get(model_task(folder)).use[0])


def examine_run(folder: Path) -> Diagnosis:
    """Examines the folder of a run."""
    parts = [examined(name, names_in, folder / name) for name in (STATES, CHECKPOINTS)]
    if links := [finding for finding in parts if finding.state == DAMAGED]:
        return Diagnosis("a run", links, [])
    records: list[dict[str, Any]] = []
    steps: list[int] = []

    def log(path: Path) -> str:
        if not path.exists():
            raise ValueError("missing")
        records.extend(read_log(path))
        return f"{len(records):,} records"

    def state(path: Path) -> str:
        steps.append(read_state(path).progress["step"])
        return f"of update {steps[-1]:,}"

    findings = [examined(CONFIG, read_settings, folder)]
    settings = read_settings(folder) if findings[0].state == OK else {}
    if settings.get("tokenizer") is not None:
        findings.append(examined(TOKENIZER, check_tokenizer, folder, settings))
    advice = "Give the folder of a model, best/ or averaged/, instead of the run"
    findings.append(examined(LOG, log, folder / LOG, advice=advice))
    states = TrainingState(folder / STATES).paths()
    for path in states:
        name, advice = f"{STATES}/{path.name}", "A resume passes over it"
        findings.append(examined(name, state, path, advice=advice))
    if states and not steps:
        advice = "Train again in another folder; the models do not need the states"
        findings.append(Finding(DAMAGED, STATES, "no state is intact", advice))
    for path in numbered(folder / CHECKPOINTS, "step"):
        name, advice = f"{CHECKPOINTS}/{path.name}", "The average leaves it out"
        findings.append(examined(name, read_weights, path, advice=advice))
    advice = "A resumed run writes it again at its next better validation"
    events = {record["event"] for record in records}
    # The models of a run after its first validation, and after its end.
    models = [
        examined(name, size_of, read_model, folder / name, advice=advice)
        for name, event in ((BEST, "period"), (AVERAGED, "averaged"))
        if event in events or (folder / name).is_dir()
    ]
    intact = [folder / model.name for model in models if model.state == OK]
    usable = [use_model(path) for path in intact]
    found = Diagnosis("a run", [*findings, *models], usable)
    if steps and not {CONFIG, TOKENIZER}.intersection(found.damaged):
        usable.append(
            f"kav train with the same options continues at update {steps[-1]:,}"
        )
    return found


def examine_model(folder: Path) -> Diagnosis:
    """Examines a model folder."""
    advice = "Restore it from a copy"
    path = folder.resolve()
    findings = [examined(folder.name, size_of, load_model, path, advice=advice)]
    usable = []
    if findings[0].state == OK:
        if (folder / TOKENIZER).is_file() or (folder / ADAPTER).is_file():
            usable = [use_model(folder)]
        else:
            findings.append(Finding(NOTE, TOKENIZER, "none: takes token ids only"))
            usable = [f"keras_attnvariants.load_model({str(folder)!r})"]
    return Diagnosis("a model", findings, usable)


def size_of(read: Callable[[Path], Any], folder: Path) -> str:
    """The size of a readable folder."""
    read(folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return f"as written, {size / 1e6:.1f} MB"


def examine_saved_model(folder: Path) -> Diagnosis:
    """Examines a SavedModel, or all versions of it."""
    places = {path.name: path for path in saved_models(folder)}
    usable = []

    def read(path: Path) -> None:
        command = tasks.command_for(SavedTranslator(path).reads_text)
        usable.append(use("--saved-model", path, command))

    findings = [examined(name, size_of, read, path) for name, path in places.items()]
    return Diagnosis("a SavedModel", findings, usable)


def examine_corpus(
    place: str, languages: tuple[str, str], task: str = tasks.DEFAULT
) -> Diagnosis:
    """Examines a corpus by reading it as for training."""
    try:
        corpus = load_corpus(place, *languages, task=task)
    except (ValueError, OSError) as error:
        if not os.path.lexists(place):
            raise  # not damaged: an unknown name, or no network
        finding = Finding(DAMAGED, Path(place).name, one_line(str(error)))
        return Diagnosis("a corpus", [finding], [])
    findings = [Finding(OK, x.split, str(x)) for x in corpus.reports.values()]
    findings += [Finding(NOTE, corpus.name, note) for note in corpus.notes]
    if "train" not in corpus.splits:
        findings.append(Finding(NOTE, "train", "no such split: good for scoring only"))
    return Diagnosis("a corpus", findings, [])
