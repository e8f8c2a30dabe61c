"""A search: its settings, its folder, and the processes that run its trials."""

import dataclasses
import functools
import json
import os
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import KW_ONLY
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants.data import Corpus
from keras_attnvariants.presets import Preset
from keras_attnvariants.training.run_settings import DifferentSettingsError
from keras_attnvariants.training.run_settings import differences_of
from keras_attnvariants.training.run_settings import prepare_vocabulary
from keras_attnvariants.training.training_config import describe_data
from keras_attnvariants.training.training_config import faster_precision
from keras_attnvariants.tuning.results import OBJECTIVES
from keras_attnvariants.tuning.results import SearchResult
from keras_attnvariants.tuning.results import read_result
from keras_attnvariants.tuning.space import SearchSpace
from keras_attnvariants.tuning.trials import Budget
from keras_attnvariants.tuning.trials import run_trial
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import replace_file
from keras_attnvariants.utils.importing import import_named
from keras_attnvariants.utils.locks import lock_folder
from keras_attnvariants.utils.machine import check_extra

SETTINGS = "search.json"
# What all trials compute in, if a search chose it.
PRECISION = "precision.txt"


@dataclass(frozen=True)
class Search:
    """A search that can be started, continued and joined by workers.

    Attributes:
        preset: trained where the space says nothing else.
        corpus: with a split "validation", which the objective is measured on.
        space: the dimensions that vary.
        folder: folder of the search; everything is written there.
        budget: the budget of each trial.
        objective: `"loss"` or `"bleu"`, on the validation split.
        method: `"random"` without repetition; `"bayesian"`; or `"hyperband"`, which
            gives all trials a part of the budget and continues the best of them.
        max_trials: number of trials; `None` for all points of a space of up to 20, and
            20 of a larger one. Hyperband decides it by itself.
        seeds: one run of each trial for each; its score is their mean.
        seed: determines the points.
        factor: in Hyperband, one of so many trials is continued.
        vocabulary_size: number of tokens in all trials; `None` for the preset's.
        subwords: options of the vocabulary; as for `train_preset`.
        bleu_sentences: number of validation sentences for `"bleu"`.
        settings: fields of `TrainingConfig`, such as `patience`.
        precision: dtype policy, or `"auto"`; as for `train_preset`.
        imports: modules with variants and presets of one's own, which workers import.

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
    factor: int = 3
    vocabulary_size: int | None = None
    subwords: Mapping[str, Any] = field(default_factory=dict)
    bleu_sentences: int = 200
    settings: Mapping[str, Any] = field(default_factory=dict)
    precision: str = "auto"
    imports: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_choice("method", self.method, ("random", "bayesian", "hyperband"))
        check_choice("objective", self.objective, OBJECTIVES)
        bayesian = ["sklearn"] * (self.method == "bayesian")
        check_extra("A search", "tune", ["keras_tuner", "tensorboard", *bayesian])
        check_optional_integer("max_trials", self.max_trials)
        check_integer("seed", self.seed)
        check_integer("factor", self.factor, minimum=2)
        check_integer("bleu_sentences", self.bleu_sentences)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(
                f"`seeds` must be different integers. Received: {self.seeds}"
            )
        for seed in self.seeds:
            check_integer("seeds", seed, minimum=0)

    def run(self, workers: int = 1, chief: str | None = None) -> SearchResult:
        """Run the search, or continue it.

        Args:
            workers: processes on this machine that run trials; with a chief, there may
                be none.
            chief: address, `"host:port"`, at which this process hands out trials to
                workers on other machines.
        """
        from keras_attnvariants.tuning.workers import RunTuner

        check_integer("workers", workers, minimum=1 if chief is None else 0)
        with lock_folder(self.folder):
            self.open()
            oracle = self.oracle()
            tuner = RunTuner(oracle, self.train, self.folder)
            oracle.reload()
            if workers == 1 and chief is None:
                # No other process is left.
                oracle.gone.update(oracle.ongoing_trials)
                tuner.search()
            else:
                from keras_attnvariants.tuning.chief import hand_out

                hand_out(oracle, self.join, workers, chief)
            if oracle.failure is not None:
                raise oracle.failure
            return self.result()

    def join(self, chief: str, name: str) -> None:
        """Be a worker: run trials of a chief until there are none.

        Args:
            chief: its address, `"host:port"`.
            name: name of this worker. A worker that is started again under its name
                continues its trial.

        Raises:
            ValueError: the folder holds another search, no chief answers, or a module
                cannot be imported.
        """
        from keras_attnvariants.tuning import workers

        for module in self.imports:
            import_named("imports", module)
        workers.check_worker_name(name)
        workers.wait_for_search(self.folder / SETTINGS, chief)
        self.check_same()
        tuner = workers.WorkerTuner(self.oracle(), self.train, self.folder, chief, name)
        with workers.heartbeat(self.folder, name):
            tuner.search()

    @property
    def train(self) -> Any:
        """The function that trains a trial in a folder; see `run_trial`."""
        return functools.partial(run_trial, self)

    @property
    def chosen_precision(self) -> str:
        """The dtype policy of all trials."""
        if self.precision == "auto":
            return (self.folder / PRECISION).read_text()
        return self.precision

    def result(self) -> SearchResult:
        """The trials that have ended so far."""
        return read_result(self.folder, self.objective, self.budget.describe())

    def oracle(self) -> Any:
        """A new oracle, which knows the whole space."""
        from keras_attnvariants.tuning.oracles import make_oracle

        return make_oracle(self)

    def check(self) -> None:
        """Raises unless the search can begin.

        Raises:
            ValueError: an argument is wrong, or a part of the space cannot be built.
        """
        if "validation" not in self.corpus.splits:
            raise ValueError(
                "A search needs a corpus with a split 'validation'. "
                f"Received: {self.corpus.name!r} with {list(self.corpus.splits)}"
            )
        if self.objective == "loss" and "label_smoothing" in self.space.training:
            raise ValueError(
                "`label_smoothing` changes the loss itself: search it with the "
                "objective 'bleu'. Received: 'loss'"
            )
        self.space.check(self.preset, self.vocabulary_size)
        if self.method == "hyperband":
            from keras_attnvariants.backend.private import random_trials

            needed = random_trials(self.oracle())
            points = self.space.points(self.preset)
            if points < needed:
                raise ValueError(
                    f"Hyperband with {self.budget.validations} validations needs "
                    f"{needed} different points: take another method, or fewer "
                    f"validations. Received: a space with {points}"
                )

    def check_same(self) -> None:
        """Raises unless the folder holds no search, or this one.

        Raises:
            DifferentSearchError: a setting other than the number of trials differs.
        """
        if not (self.folder / SETTINGS).exists():
            return
        saved = read_json(self.folder / SETTINGS)
        different = differences_of(saved, self.described(), free=[("max_trials",)])
        if different:
            raise DifferentSearchError(self.folder, different)

    def open(self) -> None:
        """Check and write the settings, vocabulary and precision of all trials."""
        self.check_same()
        self.check()
        settings = json.dumps(self.described(), indent=1)
        replace_file(self.folder / SETTINGS, settings.encode())
        size = self.vocabulary_size or self.preset.options["vocabulary_size"]
        prepare_vocabulary(self.folder, self.corpus, size, self.subwords)
        precision = self.folder / PRECISION
        if self.precision == "auto" and not precision.is_file():
            replace_file(precision, faster_precision().encode())

    def described(self) -> dict[str, Any]:
        """All that decides the result of the search, in a form that JSON can hold."""
        options = self.preset.options
        settings = {
            **{f"preset.{name}": value for name, value in options.items()},
            "space": self.space.to_dict(),
            "budget": dataclasses.asdict(self.budget),
            "seeds": list(self.seeds),
            **{name: getattr(self, name) for name in DESCRIBED},
            **describe_data(self.preset, self.corpus, self.subwords),
        }
        return json.loads(json.dumps(settings, default=serialized))


# Attributes of a search that are noted as they are.
DESCRIBED = (
    *("objective", "vocabulary_size", "settings", "precision"),
    *("method", "max_trials", "seed", "factor"),
)


def search(
    preset: Preset,
    corpus: Corpus,
    space: SearchSpace,
    folder: str | os.PathLike[str],
    **options: Any,
) -> Search:
    """A search for the best point of a space; `run` starts or continues it.

    Every trial is a run of `train_preset` in a folder of its own. A search that was
    killed is continued by the same call, at its very update, with the same result.

    Args and errors as for `Search`; `options` has its budget, and perhaps more.

    Example:

    ```python
    space = kav.tuning.named_space("you2020/offsets", preset)
    budget = kav.tuning.Budget(updates=6000)
    search = kav.tuning.search(preset, corpus, space, "runs/offsets", budget=budget)
    folder = search.run().run_folder()
    ```
    """
    return Search(preset, corpus, space, Path(folder), **options)


def serialized(value: Any) -> Any:
    """A value that JSON cannot hold: a schedule as its configuration."""
    if hasattr(value, "get_config"):
        return keras.saving.serialize_keras_object(value)
    return repr(value)


class DifferentSearchError(DifferentSettingsError):
    """The folder holds a search with other settings, or on another corpus."""

    problem = (
        "{} holds a search with other settings, or on another corpus: give those to "
        "continue it, or choose another folder"
    )
