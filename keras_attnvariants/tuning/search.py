"""A search: its oracle, its folder, and the processes that run its trials."""

import math
import os
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_attnvariants.data import Corpus
from keras_attnvariants.presets import Preset
from keras_attnvariants.tuning.budget import Budget
from keras_attnvariants.tuning.private import random_trials
from keras_attnvariants.tuning.records import ERROR
from keras_attnvariants.tuning.records import OBJECTIVES
from keras_attnvariants.tuning.records import SearchResult
from keras_attnvariants.tuning.records import read_result
from keras_attnvariants.tuning.settings import METHODS
from keras_attnvariants.tuning.settings import check_packages
from keras_attnvariants.tuning.settings import check_same_search
from keras_attnvariants.tuning.settings import describe
from keras_attnvariants.tuning.settings import write_settings
from keras_attnvariants.tuning.space import SearchSpace
from keras_attnvariants.tuning.trials import Trials
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.locks import lock_folder

# Trials of a search in a space without end.
DEFAULT_TRIALS = 20
# A trial that failed for another reason than its point is run again once.
RETRIES = 1
MAX_FAILURES = 3


@dataclass(frozen=True)
class Search:
    """A search that can be started, continued and joined by workers.

    Attributes:
        trials: what its trials share.
        folder: of the search; everything is written there.
        method: `"random"` without repetition; `"bayesian"`; or `"hyperband"`, which
            gives all trials a part of the budget and continues the best of them.
        max_trials: number of trials; Hyperband decides it by itself.
        seed: determines the points.
        factor: in Hyperband, one of so many trials is continued.

    Raises:
        ValueError: an argument is wrong, or a package of the extra `tune` is missing.
    """

    trials: Trials
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
        failed = {
            path.parent.name.removeprefix("trial_"): path.read_text().strip()
            for path in sorted(self.folder.glob(f"trial_*/{ERROR}"))
        }
        described = self.trials.budget.describe()
        return read_result(self.folder, self.trials.objective, described, failed)

    def oracle(self) -> Any:
        """A new oracle, which knows the whole space."""
        from keras_tuner import Objective

        from keras_attnvariants.tuning import oracles

        name, higher_is_better = OBJECTIVES[self.trials.objective]
        options = {
            "folder": self.folder,
            "objective": Objective(name, "max" if higher_is_better else "min"),
            "hyperparameters": self.trials.space.hyperparameters(self.trials.preset),
            "allow_new_entries": False,
            "seed": self.seed,
            "max_retries_per_trial": RETRIES,
            "max_consecutive_failed_trials": MAX_FAILURES,
        }
        if self.method == "hyperband":
            epochs = self.trials.budget.validations
            # It adds values of its own.
            options["allow_new_entries"] = True
            return oracles.Hyperband(max_epochs=epochs, factor=self.factor, **options)
        kind = oracles.RandomOracle
        if self.method == "bayesian":
            kind = oracles.BayesianOracle
            # Half of the trials, and no more than keras-tuner would take.
            dimensions = len(options["hyperparameters"].space)
            half = math.ceil(self.max_trials / 2)
            options["num_initial_points"] = max(3, min(3 * dimensions, half))
        return kind(max_trials=self.max_trials, **options)

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
        """Check and write the settings, and what all trials need."""
        settings = self.settings()
        check_same_search(self.folder, settings)
        self.check()
        write_settings(self.folder, settings)
        self.trials.prepare(self.folder)

    def settings(self) -> dict[str, Any]:
        """What decides the result of the search, in a form that JSON can hold."""
        return describe(
            self.trials,
            method=self.method,
            max_trials=self.max_trials,
            seed=self.seed,
            factor=self.factor,
        )


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
            bleu_sentences, settings, precision: see `Trials`.
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
    trials = Trials(
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
