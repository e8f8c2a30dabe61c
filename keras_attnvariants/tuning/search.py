"""A search: its settings, its folder, and the processes that run its trials."""

import dataclasses
import json
import os
import socket
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import KW_ONLY
from dataclasses import dataclass
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants.data import Corpus
from keras_attnvariants.data import tasks
from keras_attnvariants.presets import Preset
from keras_attnvariants.training.fine_tuning import fine_tuning_from
from keras_attnvariants.training.model_training import given_tokenizer
from keras_attnvariants.training.run_settings import DifferentSettingsError
from keras_attnvariants.training.run_settings import differences_of
from keras_attnvariants.training.run_settings import prepare_vocabulary
from keras_attnvariants.training.training_config import describe_data
from keras_attnvariants.training.training_config import faster_precision
from keras_attnvariants.tuning.job_processes import IncompleteError
from keras_attnvariants.tuning.job_processes import Job
from keras_attnvariants.tuning.job_processes import Report
from keras_attnvariants.tuning.job_processes import run_jobs
from keras_attnvariants.tuning.results import SearchResult
from keras_attnvariants.tuning.results import read_result
from keras_attnvariants.tuning.space import SearchSpace
from keras_attnvariants.tuning.trials import Budget
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import replace_file
from keras_attnvariants.utils.importing import import_named
from keras_attnvariants.utils.locks import lock_folder
from keras_attnvariants.utils.machine import check_extra

SETTINGS = "search.json"
# The setting with the precision of all trials.
CHOSEN = "chosen_precision"


@dataclass(frozen=True)
class Search:
    """A search that can be started, continued and joined by workers.

    Attributes:
        preset: what to train, except for the dimensions of the space.
        corpus: corpus with a split "validation", on which the objective is measured.
        space: the dimensions that vary.
        folder: folder of the search; everything is written there.
        budget: the budget of each trial.
        objective: `"loss"`, or the first metric of the task of the corpus such as
            `"bleu"`, on the validation split.
        method: `"random"` without repetition, or `"bayesian"`.
        max_trials: number of trials; `None` for all points of a space of up to 20, and
            20 of a larger one.
        seeds: each trial has one run per seed; its score is their mean.
        seed: determines the points.
        vocabulary_size: number of tokens in all trials; `None` for the preset's.
        subwords: options of the vocabulary; as for `train_preset`.
        score_sentences: number of validation sentences for other objectives.
        settings: fields of `TrainingConfig`, such as `patience`.
        precision: dtype policy, or `"auto"`; as for `train_preset`.
        continue_from: name, address or folder of the model that all trials begin with;
            `search` gives the preset its sizes and vocabulary.
        imports: modules with your own variants and presets, which workers import.

    Raises:
        ValueError: an argument is wrong, or a package of the extra `tune` is missing.
    """

    preset: Preset
    corpus: Corpus
    space: SearchSpace
    folder: Path
    _: KW_ONLY
    budget: Budget
    objective: str = "loss"
    method: str = "random"
    max_trials: int | None = None
    seeds: Sequence[int] = (1,)
    seed: int = 1
    vocabulary_size: int | None = None
    subwords: Mapping[str, Any] = field(default_factory=dict)
    score_sentences: int = 200
    settings: Mapping[str, Any] = field(default_factory=dict)
    precision: str = "auto"
    continue_from: str | None = None
    imports: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_choice("method", self.method, ("random", "bayesian"))
        [metric, *_] = tasks.get(self.corpus.task).metrics
        check_choice("objective", self.objective, ("loss", metric))
        bayesian = ["sklearn"] * (self.method == "bayesian")
        check_extra("A search", "tune", ["keras_tuner", "tensorboard", *bayesian])
        check_optional_integer("max_trials", self.max_trials)
        check_integer("seed", self.seed)
        check_integer("score_sentences", self.score_sentences)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(
                f"`seeds` must be different integers. Received: {self.seeds}"
            )
        for seed in self.seeds:
            check_integer("seeds", seed, minimum=0)

    def run(self, workers: int = 1) -> SearchResult:
        """Run the search, or continue it.

        Processes that run the same search in one folder share its trials, on this
        machine or on others: each trains the next trial, or continues the trial of a
        process that has ended.

        Args:
            workers: number of processes that share the cores of this machine, and print
                into files in `workers`; with one, trials are trained in this process.

        Raises:
            ValueError: an argument is wrong, or too many trials in a row have failed.
            DifferentSearchError: the folder contains another search.
            IncompleteError: a worker failed or died.
        """
        # Imports keras-tuner.
        from keras_attnvariants.tuning.oracles import train_trials

        check_integer("workers", workers)
        self.check()
        with lock_folder(self.folder, wait=True):
            opened = self.open()
        if workers == 1:
            train_trials(opened)
            return self.result()
        logs, host = self.folder / "workers", socket.gethostname()
        jobs = [
            Job(f"worker {n}", partial(work, opened), logs / f"{host}-{n}.log")
            for n in range(1, workers + 1)
        ]
        if failed := run_jobs(jobs, "workers", workers, workers):
            raise IncompleteError(failed)
        return self.result()

    def result(self) -> SearchResult:
        """The trials that have ended so far."""
        return read_result(self.folder, self.objective, self.budget.describe())

    def check(self) -> None:
        """Check that the search can begin.

        Raises:
            ValueError: an argument is wrong, or a part of the space cannot be built.
        """
        if "validation" not in self.corpus.splits:
            raise ValueError(
                "A search needs a corpus with a split 'validation'. "
                f"Received: {self.corpus.name!r} with {list(self.corpus.splits)}"
            )
        if self.objective == "loss" and "label_smoothing" in self.space.training:
            [metric, *_] = tasks.get(self.corpus.task).metrics
            raise ValueError(
                "`label_smoothing` changes the loss itself: search it with the "
                f"objective {metric!r}. Received: 'loss'"
            )
        self.space.check(self.preset, self.vocabulary_size)

    def open(self) -> "Search":
        """Write the settings and the vocabulary of all trials.

        Returns:
            The search with the precision of all its trials.

        Raises:
            DifferentSearchError: the folder contains another search; only the number
                of trials may differ.
        """
        path, settings = self.folder / SETTINGS, self.described()
        saved = read_json(path) if path.exists() else {}
        free = [("max_trials",), ("revision",), (CHOSEN,)]
        if saved and (different := differences_of(saved, settings, free)):
            raise DifferentSearchError(self.folder, different)
        size = self.vocabulary_size or self.preset.options["vocabulary_size"]
        start = fine_tuning_from(self.continue_from)
        own = None if start is None else start.trained.tokenizer
        prepare_vocabulary(self.folder, self.corpus, size, self.subwords, own)
        precision = self.precision
        if precision == "auto":
            precision = saved.get(CHOSEN) or faster_precision()
        settings[CHOSEN] = precision
        replace_file(path, json.dumps(settings, indent=1).encode())
        return dataclasses.replace(self, precision=precision)

    def described(self) -> dict[str, Any]:
        """Everything that determines the result of the search, in a form for JSON."""
        options = self.preset.options
        settings = {
            **{f"preset.{name}": value for name, value in options.items()},
            "space": self.space.to_dict(),
            "budget": dataclasses.asdict(self.budget),
            "seeds": list(self.seeds),
            **{name: getattr(self, name) for name in DESCRIBED},
            **describe_data(self.preset, self.corpus, self.subwords),
        }
        if (start := fine_tuning_from(self.continue_from)) is not None:
            settings["continue_from"] = start.describe()["from_model"]
        return json.loads(json.dumps(settings, default=serialized))


# Attributes of a search that are recorded unchanged.
DESCRIBED = (
    *("objective", "vocabulary_size", "settings", "precision"),
    *("method", "max_trials", "seed"),
)


def search(
    preset: Preset,
    corpus: Corpus,
    space: SearchSpace,
    folder: str | os.PathLike[str],
    **options: Any,
) -> Search:
    """A search for the best point of a space; `run` starts or continues it.

    Every trial is a run of `train_preset` in its own folder. The same call continues a
    killed search at the update where it stopped, with the same result.

    Arguments and errors are those of `Search`; `options` must have the budget.

    Example:

    ```python
    space = kav.tuning.named_space("you2020/offsets", preset)
    budget = kav.tuning.Budget(updates=6000)
    search = kav.tuning.search(preset, corpus, space, "runs/offsets", budget=budget)
    folder = search.run().run_folder()
    ```
    """
    if (start := fine_tuning_from(options.get("continue_from"))) is not None:
        size, subwords = options.get("vocabulary_size"), options.get("subwords", {})
        own = given_tokenizer(start, None, size, subwords)
        options["vocabulary_size"] = own and own.vocabulary_size
        preset = start.fitted(preset)
    return Search(preset, corpus, space, Path(folder), **options)


def work(search: Search, report: Report) -> None:
    """Train trials of a search in a separate process until none is left.

    Raises:
        ValueError: a module cannot be imported.
    """
    # Imports keras-tuner.
    from keras_attnvariants.tuning.oracles import train_trials

    for module in search.imports:
        import_named("imports", module)
    train_trials(search, report)


def serialized(value: Any) -> Any:
    """A JSON form of a value: for a schedule, its configuration."""
    if hasattr(value, "get_config"):
        return keras.saving.serialize_keras_object(value)
    return repr(value)


class DifferentSearchError(DifferentSettingsError):
    """The folder contains a search with other settings, or on another corpus."""

    problem = (
        "{} holds a search with other settings, or on another corpus: give those to "
        "continue it, or choose another folder"
    )
