"""keras-tuner's oracles, so that they survive kills, lost workers and failed trials."""

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from keras_tuner import Oracle
from keras_tuner.oracles import BayesianOptimizationOracle
from keras_tuner.oracles import HyperbandOracle
from keras_tuner.oracles import RandomSearchOracle
from keras_tuner.src.engine import conditions
from keras_tuner.src.engine.oracle import LOCKS
from keras_tuner.src.engine.oracle import THREADS
from keras_tuner.src.engine.trial import TrialStatus

from keras_attnvariants.utils.files import write_file

# Draws without a new point after which a random search takes the space for exhausted.
MAX_COLLISIONS = 2000
# It prints the value of each condition that is sent to a worker.
conditions.print = lambda *values: None

ENDED = (TrialStatus.COMPLETED, TrialStatus.FAILED)


class SearchFailedError(ValueError):
    """Several trials in a row failed: the search has stopped."""


@contextlib.contextmanager
def exclusive(oracle: Any) -> Iterator[None]:
    """Context that one thread enters at a time, and leaves however it ends.

    `keras_tuner.synchronized` keeps the lock for ever when what it guards raises; what
    runs within this context does not take the lock again.
    """
    name = threading.current_thread().name
    if THREADS[oracle] == name:
        yield
        return
    with LOCKS[oracle]:
        THREADS[oracle] = name
        try:
            yield
        finally:
            THREADS[oracle] = None


class Recoverable(Oracle):
    """A mixin for oracles: files that are whole, and trials that are never lost.

    Attributes:
        keeps_ongoing: whether trials that others were running stay theirs on `reload`,
            as for a chief whose workers go on; otherwise they are run again.
        has_stopped: whether the last that asked was told that there are no more trials.
        failure: why the search has failed, or None.
    """

    keeps_ongoing = False
    has_stopped = False
    failure: SearchFailedError | None = None
    trials: dict[str, Any]
    ongoing_trials: dict[str, Any]
    end_order: list[str]
    _retry_queue: list[str]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._max_collisions = MAX_COLLISIONS
        self._display.verbose = 0

    def create_trial(self, tuner_id: str) -> Any:
        """As keras-tuner's; a worker waits while others may lose their trials."""
        with exclusive(self):
            trial = super().create_trial(tuner_id)
            if trial.status == TrialStatus.STOPPED and self.ongoing_trials:
                trial.status = TrialStatus.IDLE
            self.has_stopped = trial.status == TrialStatus.STOPPED
            return trial

    def update_trial(self, trial_id: str, metrics: Any, step: int = 0) -> Any:
        """As keras-tuner's."""
        with exclusive(self):
            return super().update_trial(trial_id, metrics, step)

    def end_trial(self, trial: Any) -> None:
        """As keras-tuner's; what is saved no longer has the trial among the ongoing.

        A worker that got no answer says it again: a trial ends once.

        Raises:
            SearchFailedError: too many trials in a row failed.
        """
        with exclusive(self):
            if trial.trial_id in self.end_order:
                return
            super().end_trial(trial)
            self.save()

    def give_back(self, tuner_id: str) -> str | None:
        """Let another worker continue the trial of one that is gone.

        Returns:
            Its number, or None if the worker had none.
        """
        with exclusive(self):
            self.tuner_ids.discard(tuner_id)
            trial = self.ongoing_trials.pop(tuner_id, None)
            if trial is None:
                return None
            self._retry_queue.append(trial.trial_id)
            self.save()
            return str(trial.trial_id)

    def save(self) -> None:
        """Write the state; the file is whole at any moment."""
        write_json(Path(self._get_oracle_fname()), self.get_state())

    def _save_trial(self, trial: Any) -> None:
        path = Path(self._get_trial_dir(trial.trial_id)) / "trial.json"
        write_json(path, trial.get_state())

    def reload(self) -> None:
        """As keras-tuner's, without trials that were not begun or have ended."""
        super().reload()
        # A kill may have come between the file of a trial and that of the oracle: the
        # trial is drawn again, from the same seed.
        known = sorted(set(self.start_order) & self.trials.keys())
        self.trials = {number: self.trials[number] for number in known}
        queue = dict.fromkeys(self._retry_queue)
        open_trials = [n for n in queue if self.trials[n].status not in ENDED]
        # Of which the oracle does not know yet that they have ended.
        open_trials += [n for n in queue if n not in (*self.end_order, *open_trials)]
        if self.keeps_ongoing:
            saved = json.loads(Path(self._get_oracle_fname()).read_text("utf-8"))
            self.ongoing_trials = {
                name: self.trials[number]
                for name, number in saved["ongoing_trials"].items()
                if number in open_trials
            }
            held = {trial.trial_id for trial in self.ongoing_trials.values()}
            open_trials = [number for number in open_trials if number not in held]
        self._retry_queue = open_trials

    def _check_consecutive_failures(self) -> None:
        try:
            super()._check_consecutive_failures()
        except RuntimeError as error:
            self.failure = SearchFailedError(
                f"{self.max_consecutive_failed_trials} trials in a row failed; their "
                f"errors are in {self._project_dir}"
            )
            raise self.failure from error


class RandomOracle(Recoverable, RandomSearchOracle):
    """Random points without repetition."""


class BayesianOracle(Recoverable, BayesianOptimizationOracle):
    """A Gaussian process over the points so far."""

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """The next point, the same whether or not the search was killed before."""
        self._random_state = np.random.RandomState(self.seed + len(self.trials))
        return super().populate_space(trial_id)


class Hyperband(Recoverable, HyperbandOracle):
    """Many short trials, of which the best are continued."""

    def random_trials(self) -> int:
        """Number of points that one pass over all brackets needs."""
        brackets = range(self._get_num_brackets())
        return sum(self._get_size(bracket, 0) for bracket in brackets)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file that is either whole or as it was before."""
    write_file(path, json.dumps(value).encode())
