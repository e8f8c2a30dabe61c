"""keras-tuner's oracles and loop: processes share searches, and survive kills."""

import contextlib
import json
import math
import os
import socket
import time
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_tuner import Objective
from keras_tuner import Oracle
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.engine.trial import Trial
from keras_tuner.engine.trial import TrialStatus
from keras_tuner.errors import FailedTrialError
from keras_tuner.errors import FatalError
from keras_tuner.oracles import BayesianOptimizationOracle
from keras_tuner.oracles import RandomSearchOracle

from keras_attnvariants.backend.private import restart_draws
from keras_attnvariants.training import DivergedError
from keras_attnvariants.training import NonFiniteError
from keras_attnvariants.tuning.results import ERROR
from keras_attnvariants.tuning.results import OBJECTIVES
from keras_attnvariants.tuning.results import TrialRecord
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import replace_file
from keras_attnvariants.utils.locks import FolderInUseError
from keras_attnvariants.utils.locks import lock_folder

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
# Seconds between two questions for a trial.
PAUSE = 0.2


class SharedOracle(Oracle):
    """Mixin for oracles of which processes share one, as a file that is always whole.

    Each process reads the file, decides with it, and writes it before another one
    reads it. It locks the folder of its trial, and the operating system frees that
    when the process ends: then another one continues the trial.

    Args:
        folder: folder of the search.
        **options: options of keras-tuner's oracle.
    """

    trials: dict[str, Any]
    ongoing_trials: dict[str, Any]
    end_order: list[str]

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(**options)
        self.verbose = 0
        self.folder = folder
        # Has the lock of the trial that this process is at work on.
        self._trial_lock = contextlib.ExitStack()

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """A new point, also where few of a small space are left."""
        for _ in range(DRAWS):
            found = super().populate_space(trial_id)
            if found["status"] != TrialStatus.STOPPED:
                break
        return found

    def create_trial(self, tuner_id: str) -> Any:
        """A trial whose process has ended, or a new one.

        While others may still leave their trials, a process without one is told to
        wait.
        """
        with self._shared_state():
            for name, trial in list(self.ongoing_trials.items()):
                if self._lock(trial):
                    print(f"Trial {trial.trial_id} is continued.")
                    self.ongoing_trials[tuner_id] = self.ongoing_trials.pop(name)
                    self._write()
                    return trial
            trial = super().create_trial(tuner_id)
            if trial.status == TrialStatus.RUNNING:
                self._lock(trial)
                self._write()
            elif trial.status == TrialStatus.STOPPED and self.ongoing_trials:
                trial.status = TrialStatus.IDLE
            return trial

    def update_trial(self, trial_id: str, metrics: Any, step: int = 0) -> Any:
        """The trial, with these metrics."""
        with self._shared_state():
            trial = super().update_trial(trial_id, metrics, step)
            self._write()
            return trial

    def end_trial(self, trial: Any) -> None:
        """Record the end of a trial, once even if two processes had it.

        Raises:
            ValueError: too many trials in a row have failed.
        """
        with self._shared_state():
            try:
                if trial.trial_id not in self.end_order:
                    super().end_trial(trial)
                    self._write()
            except RuntimeError as error:
                raise ValueError(
                    f"{self.max_consecutive_failed_trials} trials in a row failed; "
                    f"their errors are in {self.folder}"
                ) from error
        self.leave_trial()

    def leave_trial(self) -> None:
        """Let another process continue the trial of this one, if it has one."""
        self._trial_lock.close()

    def get_state(self) -> dict[str, Any]:
        """The state with all trials."""
        trials = [trial.get_state() for trial in self.trials.values()]
        return {**super().get_state(), "trials": trials}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over a state with all trials."""
        trials = [Trial.from_state(trial) for trial in state["trials"]]
        self.trials = {trial.trial_id: trial for trial in trials}
        super().set_state(state)

    def save(self) -> None:
        """Write nothing: each decision is written when it is complete."""

    def _write(self) -> None:
        replace_file(self.folder / STATE, json.dumps(self.get_state()).encode())

    @contextlib.contextmanager
    def _shared_state(self) -> Iterator[None]:
        """Context in which the state is that of the folder, and no other's to change.

        Raises:
            DamagedFolderError: it cannot be read.
        """
        with lock_folder(self.folder, wait=True):
            if (self.folder / STATE).exists():
                self.set_state(read_json(self.folder / STATE))
            yield

    def _lock(self, trial: Any) -> bool:
        """Whether this process has locked the folder of a trial just now."""
        folder = self.folder / f"trial_{trial.trial_id}"
        try:
            self._trial_lock.enter_context(lock_folder(folder))
        except FolderInUseError:
            return False
        return True


class RandomOracle(SharedOracle, RandomSearchOracle):
    """Random points without repetition."""


class BayesianOracle(SharedOracle, BayesianOptimizationOracle):
    """A Gaussian process over the points so far."""

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """The next point, the same whether or not the search was killed before."""
        restart_draws(self, self.seed + len(self.trials))
        return super().populate_space(trial_id)


def make_oracle(search: "Search") -> Any:
    """A new oracle for a search, which knows the whole space."""
    space = search.space.hyperparameters(search.preset)
    score, higher_is_better = OBJECTIVES[search.objective]
    options = {
        "folder": search.folder,
        "objective": Objective(score, "max" if higher_is_better else "min"),
        "hyperparameters": space,
        "allow_new_entries": False,
        "seed": search.seed,
        "max_retries_per_trial": RETRIES,
        "max_consecutive_failed_trials": MAX_FAILURES,
    }
    few = int(min(search.space.points(search.preset), DEFAULT_TRIALS))
    trials = options["max_trials"] = search.max_trials or few
    if search.method == "random":
        return RandomOracle(**options)
    # Half of the trials, and no more than keras-tuner would take.
    half = math.ceil(trials / 2)
    options["num_initial_points"] = max(3, min(3 * len(space.space), half))
    return BayesianOracle(**options)


class RunTuner(BaseTuner):
    """Trains the trials that an oracle proposes, each as a run that can be resumed.

    Args:
        oracle: a `SharedOracle`, which knows the whole space.
        train: takes the folder of a trial and its values, and returns its record.
        folder: folder of the search; each trial has a folder in it.
        report: is told how much of the search is done, from 0 to 1, and the trial.
    """

    oracle: Any

    def __init__(
        self,
        oracle: Any,
        train: Callable[[Path, Any], TrialRecord],
        folder: Path,
        report: Callable[[float, str], None],
    ) -> None:
        self._train = train
        self._report = report
        folder = folder.resolve()
        super().__init__(oracle, directory=folder.parent, project_name=folder.name)
        self.tuner_id = f"{socket.gethostname()}-{os.getpid()}"

    def save(self) -> None:
        """Write nothing: only an oracle has a state."""

    def search(self) -> None:
        """Train trials until the oracle has no more.

        Raises:
            ValueError: too many trials in a row have failed.
            OSError: the disk is full, or a folder cannot be written.
            SystemExit: after SIGTERM or SIGINT; the trial is continued the next time.
        """
        try:
            super().search()
        except FatalError as error:
            raise error.__cause__ or error from None
        finally:
            self.oracle.leave_trial()

    def pre_create_trial(self) -> None:
        """Wait a little: an oracle without a trial is asked again and again."""
        time.sleep(PAUSE)

    def on_trial_begin(self, trial: Any) -> None:
        """Report the trial."""
        ended, total = len(self.oracle.end_order), self.oracle.max_trials
        self._report(ended / total, f"trial {trial.trial_id}")

    def run_trial(self, trial: Any) -> dict[str, float]:
        """Train a trial, or continue it where it was killed.

        Returns:
            The score by the name of the objective.
        """
        folder = Path(self.get_trial_dir(trial.trial_id))
        try:
            record = self._train(folder, trial.hyperparameters.values)
        except OSError as error:
            raise FatalError(str(error)) from error
        except Exception as error:
            message = f"{type(error).__name__}: {error}".partition("\n")[0]
            print(f"Trial {trial.trial_id} failed. {message}")
            replace_file(folder / ERROR, f"{message}\n".encode())
            if is_due_to_the_point(error):
                raise FailedTrialError(message) from error
            raise
        (folder / ERROR).unlink(missing_ok=True)
        print(record.describe(self.oracle.objective.name))
        return {self.oracle.objective.name: record.score}


def is_due_to_the_point(error: Exception) -> bool:
    """Whether a trial would fail again: it diverged, or does not fit into memory."""
    kinds = NonFiniteError, DivergedError, MemoryError
    return isinstance(error, kinds) or type(error).__name__ == "ResourceExhaustedError"
