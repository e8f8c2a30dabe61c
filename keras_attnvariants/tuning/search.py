"""A search: its oracle, its folder, and the processes that run its trials."""

import dataclasses
import json
import os
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants.data import Corpus
from keras_attnvariants.presets import Preset
from keras_attnvariants.training.runs import describe_data
from keras_attnvariants.tuning.budget import Budget
from keras_attnvariants.tuning.private import random_trials
from keras_attnvariants.tuning.results import SearchResult
from keras_attnvariants.tuning.results import read_result
from keras_attnvariants.tuning.space import SearchSpace
from keras_attnvariants.tuning.trial_runs import TrialRunner
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.locks import lock_folder
from keras_attnvariants.utils.machine import check_extra

# Trials of a search in a space without end.
DEFAULT_TRIALS = 20
SETTINGS = "search.json"
METHODS = ("random", "bayesian", "hyperband")
# What differs if another corpus is given.
CONTENTS = ("train_sentences", "validation_sentences", "alignments")
# A search may be given more trials.
FREE_TO_CHANGE = ("max_trials",)


@dataclass(frozen=True)
class Search:
    """A search that can be started, continued and joined by workers.

    Attributes:
        trials: trains its trials.
        folder: of the search; everything is written there.
        method: `"random"` without repetition; `"bayesian"`; or `"hyperband"`, which
            gives all trials a part of the budget and continues the best of them.
        max_trials: number of trials; Hyperband decides it by itself.
        seed: determines the points.
        factor: in Hyperband, one of so many trials is continued.

    Raises:
        ValueError: an argument is wrong, or a package of the extra `tune` is missing.
    """

    trials: TrialRunner
    folder: Path
    method: str = "random"
    max_trials: int = DEFAULT_TRIALS
    seed: int = 1
    factor: int = 3

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHODS)
        check_packages(self.method)
        check_integer("max_trials", self.max_trials)
        check_integer("seed", self.seed)
        check_integer("factor", self.factor, minimum=2)

    def run(self, workers: int = 1, chief: str | None = None) -> SearchResult:
        """Run the search, or continue it.

        Args:
            workers: processes on this machine that run trials; with a chief, there may
                be none.
            chief: address, `"host:port"`, at which this process hands out trials to
                workers on other machines.
        """
        check_integer("workers", workers, minimum=1 if chief is None else 0)
        with lock_folder(self.folder):
            self._open()
            self._run_trials(workers, chief)
            return self.result()

    def _run_trials(self, workers: int, chief: str | None) -> None:
        from keras_attnvariants.tuning.tuner import RunTuner

        tuner = RunTuner(self.oracle(), self.trials, self.folder)
        oracle = tuner.oracle
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

    def join(self, chief: str, name: str) -> None:
        """Be a worker: run trials of a chief until there are none.

        Args:
            chief: its address, `"host:port"`.
            name: of this worker. One that is started again under its name continues
                its trial.

        Raises:
            ValueError: the folder holds another search, or no chief answers.
        """
        from keras_attnvariants.tuning.workers import WorkerTuner
        from keras_attnvariants.tuning.workers import check_worker_name
        from keras_attnvariants.tuning.workers import heartbeat
        from keras_attnvariants.tuning.workers import wait_for_search

        check_worker_name(name)
        wait_for_search(self.folder, chief)
        check_same_search(self.folder, self.settings())
        tuner = WorkerTuner(self.oracle(), self.trials, self.folder, chief, name)
        with heartbeat(self.folder, name):
            tuner.search()

    def result(self) -> SearchResult:
        """The trials that have ended so far."""
        described = self.trials.budget.describe()
        return read_result(self.folder, self.trials.objective, described)

    def oracle(self) -> Any:
        """A new oracle, which knows the whole space."""
        from keras_attnvariants.tuning.oracles import make_oracle

        return make_oracle(self)

    def check(self) -> None:
        """Raises unless the search can begin.

        Raises:
            ValueError: an argument is wrong, or a part of the space cannot be built.
        """
        trials = self.trials
        if "validation" not in trials.corpus.splits:
            raise ValueError(
                "A search needs a corpus with a split 'validation'. "
                f"Received: {trials.corpus.name!r} with {list(trials.corpus.splits)}"
            )
        if trials.objective == "loss" and "label_smoothing" in trials.space.training:
            raise ValueError(
                "`label_smoothing` changes the loss itself: search it with the "
                "objective 'bleu'. Received: 'loss'"
            )
        trials.space.check(trials.preset, trials.vocabulary_size)
        if self.method == "hyperband":
            needed = random_trials(self.oracle())
            points = trials.space.points(trials.preset)
            if points < needed:
                raise ValueError(
                    f"Hyperband with {trials.budget.validations} validations needs "
                    f"{needed} different points: take another method, or fewer "
                    f"validations. Received: a space with {points}"
                )

    def _open(self) -> None:
        """Check and write the settings, vocabulary and precision of all trials."""
        settings = self.settings()
        check_same_search(self.folder, settings)
        self.check()
        write_settings(self.folder, settings)
        self.trials.prepare(self.folder)

    def settings(self) -> dict[str, Any]:
        """All that decides the result of the search, in a form that JSON can hold."""
        trials = self.trials
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
            "method": self.method,
            "max_trials": self.max_trials,
            "seed": self.seed,
            "factor": self.factor,
            **describe_data(trials.preset, trials.corpus, trials.subwords),
        }
        return json.loads(json.dumps(settings, default=serialized))


def search(
    preset: Preset,
    corpus: Corpus,
    space: SearchSpace,
    folder: str | os.PathLike[str],
    *,
    budget: Budget,
    objective: str = "loss",
    method: str = "random",
    max_trials: int | None = None,
    seeds: Sequence[int] = (1,),
    seed: int = 1,
    factor: int = 3,
    vocabulary_size: int | None = None,
    subwords: Mapping[str, Any] | None = None,
    bleu_sentences: int = 200,
    settings: Mapping[str, Any] | None = None,
    precision: str = "auto",
) -> Search:
    """A search for the best point of a space; `run` starts or continues it.

    Every trial is a run of `train_preset` in a folder of its own. A search that was
    killed is continued by the same call: its trial goes on at its very update, and the
    result is that of a search that nobody killed.

    Args:
        preset, corpus, space, budget, objective, seeds, vocabulary_size, subwords,
            bleu_sentences, settings, precision: see `TrialRunner`.
        folder, method, seed, factor: see `Search`.
        max_trials: number of trials; `None` for all points of a space of up to 20, and
            20 of a larger one. Hyperband decides it by itself.

    Raises:
        ValueError: an argument is wrong, or a package of the extra `tune` is missing.

    Example:

    ```python
    space = kav.tuning.named_space("you2020/offsets", preset)
    budget = kav.tuning.Budget(updates=6000)
    search = kav.tuning.search(preset, corpus, space, "runs/offsets", budget=budget)
    model, tokenizer = kav.training.load_run(search.run().run_folder())
    ```
    """
    check_packages(method)
    trials = TrialRunner(
        preset,
        corpus,
        space,
        budget,
        objective,
        tuple(seeds),
        vocabulary_size,
        bleu_sentences,
        dict(settings or {}),
        precision,
        dict(subwords or {}),
    )
    if max_trials is None:
        max_trials = int(min(space.points(preset), DEFAULT_TRIALS))
    return Search(trials, Path(folder), method, max_trials, seed, factor)


def serialized(value: Any) -> Any:
    """A value that JSON cannot hold: a schedule as its configuration."""
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
    needed = ["keras_tuner", "tensorboard"]
    check_extra("A search", "tune", needed + ["sklearn"] * (method == "bayesian"))
