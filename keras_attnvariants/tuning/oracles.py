"""keras-tuner's oracles, so that searches survive kills and lost workers."""

import contextlib
import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_tuner import HyperParameters
from keras_tuner import Objective
from keras_tuner import Oracle
from keras_tuner import synchronized
from keras_tuner.engine.trial import Trial
from keras_tuner.engine.trial import TrialStatus
from keras_tuner.oracles import BayesianOptimizationOracle
from keras_tuner.oracles import HyperbandOracle
from keras_tuner.oracles import RandomSearchOracle

from keras_attnvariants.backend.private import restart_draws
from keras_attnvariants.tuning.results import OBJECTIVES
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import replace_file

if TYPE_CHECKING:
    from keras_attnvariants.tuning.search import Search

STATE = "oracle.json"
# Trials of a search in a larger space.
DEFAULT_TRIALS = 20
# Times that an oracle is asked for a point until its space counts as exhausted. Each
# time, keras-tuner draws up to 20 points.
DRAWS = 100
# A trial that failed for another reason than its point is run again once.
RETRIES = 1
MAX_FAILURES = 3


class ResumableOracle(Oracle):
    """Mixin for oracles that are saved as one file, which is whole at any moment.

    After a restart, workers keep the trials that they have. Trials reach workers
    without their space: keras-tuner would print each condition that it sends.

    Args:
        folder: folder of the search.
        **options: options of keras-tuner's oracle.

    Attributes:
        failure: the error that has stopped the search, or `None`.
        gone: names of workers whose trials others may continue.
        has_stopped: whether a worker was told that there are no more trials.
    """

    trials: dict[str, Any]
    ongoing_trials: dict[str, Any]
    end_order: list[str]
    tuner_ids: set[str]

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(**options)
        self.verbose = 0
        self.folder = folder
        self.failure: Exception | None = None
        self.gone: set[str] = set()
        self.has_stopped = False

    @property
    def has_ended(self) -> bool:
        """Whether no trial is left, and all workers know it."""
        return self.has_stopped and not self.ongoing_trials and not self.tuner_ids

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """A new point, also where few of a small space are left."""
        for _ in range(DRAWS):
            found = super().populate_space(trial_id)
            if found["status"] != TrialStatus.STOPPED:
                break
        return found

    @synchronized
    def create_trial(self, tuner_id: str) -> Any:
        """The trial of a worker: its own, that of one that is gone, or a new one.

        While others may lose their trials, a worker without one is told to wait.
        """
        self.gone.discard(tuner_id)
        lost = sorted(self.gone & self.ongoing_trials.keys())
        if lost and tuner_id not in self.ongoing_trials:
            self.ongoing_trials[tuner_id] = self.ongoing_trials.pop(lost[0])
        trial = Trial(HyperParameters(), status=TrialStatus.STOPPED)
        if self.failure is None:
            with self._noting_failure():
                trial = super().create_trial(tuner_id)
                if trial.status == TrialStatus.STOPPED and self.ongoing_trials:
                    trial.status = TrialStatus.IDLE
                    self.tuner_ids.add(tuner_id)
        self.has_stopped = trial.status == TrialStatus.STOPPED
        return without_space(trial)

    def get_trial(self, trial_id: str) -> Any:
        """A trial by its number."""
        return without_space(super().get_trial(trial_id))

    @synchronized
    def update_trial(self, trial_id: str, metrics: Any, step: int = 0) -> Any:
        """The trial, with these metrics."""
        with self._noting_failure():
            super().update_trial(trial_id, metrics, step)
        return self.get_trial(trial_id)

    @synchronized
    def end_trial(self, trial: Any) -> None:
        """Record the end of a trial, once even if two workers had it."""
        if trial.trial_id in self.end_order:
            return
        trial.hyperparameters = self.trials[trial.trial_id].hyperparameters
        with self._noting_failure():
            super().end_trial(trial)
            # keras-tuner saves while it still counts the trial among the ongoing.
            self.save()

    @synchronized
    def give_back(self, tuner_id: str) -> str | None:
        """Let another worker continue the trial of one that is gone.

        Returns:
            Its number, or `None` if the worker had none.
        """
        self.gone.add(tuner_id)
        self.tuner_ids.discard(tuner_id)
        trial = self.ongoing_trials.get(tuner_id)
        return None if trial is None else str(trial.trial_id)

    def get_state(self) -> dict[str, Any]:
        """The state with all trials."""
        trials = [trial.get_state() for trial in self.trials.values()]
        return {**super().get_state(), "trials": trials}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over a state with all trials."""
        trials = [Trial.from_state(trial) for trial in state["trials"]]
        self.trials = {trial.trial_id: trial for trial in trials}
        super().set_state(state)
        for name, trial in list(self.ongoing_trials.items()):
            if trial.trial_id in self.end_order:
                del self.ongoing_trials[name]

    def save(self) -> None:
        """Write the state into the folder."""
        replace_file(self.folder / STATE, json.dumps(self.get_state()).encode())

    def reload(self) -> None:
        """Take over the state in the folder, if there is one.

        Raises:
            DamagedFolderError: it cannot be read.
        """
        if (self.folder / STATE).exists():
            self.set_state(read_json(self.folder / STATE))

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        """Note an error, which would leave keras-tuner's lock taken for ever."""
        try:
            yield
        except RuntimeError as error:
            self.failure = ValueError(
                f"{self.max_consecutive_failed_trials} trials in a row failed; their "
                f"errors are in {self.folder}"
            )
            self.failure.__cause__ = error
        except Exception as error:
            self.failure = error


class RandomOracle(ResumableOracle, RandomSearchOracle):
    """Random points without repetition."""


class BayesianOracle(ResumableOracle, BayesianOptimizationOracle):
    """A Gaussian process over the points so far."""

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """The next point, the same whether or not the search was killed before."""
        restart_draws(self, self.seed + len(self.trials))
        return super().populate_space(trial_id)


class Hyperband(ResumableOracle, HyperbandOracle):
    """Many short trials, of which the best are continued."""


def without_space(trial: Any) -> Any:
    """A trial with its values alone."""
    found = copy.copy(trial)
    found.hyperparameters = HyperParameters()
    found.hyperparameters.values = dict(trial.hyperparameters.values)
    return found


def make_oracle(search: "Search") -> Any:
    """A new oracle for a search, which knows the whole space."""
    space = search.space.hyperparameters(search.preset)
    score, higher_is_better = OBJECTIVES[search.objective]
    options = {
        "folder": search.folder,
        "objective": Objective(score, "max" if higher_is_better else "min"),
        "hyperparameters": space,
        # Hyperband adds values of its own.
        "allow_new_entries": search.method == "hyperband",
        "seed": search.seed,
        "max_retries_per_trial": RETRIES,
        "max_consecutive_failed_trials": MAX_FAILURES,
    }
    if search.method == "hyperband":
        epochs = search.budget.validations
        return Hyperband(max_epochs=epochs, factor=search.factor, **options)
    few = int(min(search.space.points(search.preset), DEFAULT_TRIALS))
    trials = options["max_trials"] = search.max_trials or few
    if search.method == "random":
        return RandomOracle(**options)
    # Half of the trials, and no more than keras-tuner would take.
    half = math.ceil(trials / 2)
    options["num_initial_points"] = max(3, min(3 * len(space.space), half))
    return BayesianOracle(**options)
