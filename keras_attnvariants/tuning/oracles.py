"""keras-tuner's oracles: processes share searches, and survive kills."""

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
from keras_tuner.engine.trial import Trial
from keras_tuner.engine.trial import TrialStatus
from keras_tuner.oracles import BayesianOptimizationOracle
from keras_tuner.oracles import RandomSearchOracle

from keras_attnvariants.backend.private import place_oracle
from keras_attnvariants.backend.private import restart_draws
from keras_attnvariants.training import DivergedError
from keras_attnvariants.training import NonFiniteError
from keras_attnvariants.tuning.results import ERROR
from keras_attnvariants.tuning.results import OBJECTIVES
from keras_attnvariants.tuning.trials import run_trial
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
# Seconds between two questions for a trial, while others may leave theirs.
PAUSE = 1.0


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
        place_oracle(self, folder)
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
                    return trial
            trial = super().create_trial(tuner_id)
            if trial.status == TrialStatus.RUNNING:
                self._lock(trial)
            elif trial.status == TrialStatus.STOPPED and self.ongoing_trials:
                trial.status = TrialStatus.IDLE
            return trial

    def end_trial(self, trial: Any, score: float | None = None) -> None:
        """Record the end of a trial, once even if two processes had it.

        Args:
            trial: the trial, with its status.
            score: value of the objective, if the trial was completed.

        Raises:
            ValueError: too many trials in a row have failed.
        """
        with self._shared_state():
            try:
                if trial.trial_id not in self.end_order:
                    if score is not None:
                        metrics = {self.objective.name: score}
                        self.update_trial(trial.trial_id, metrics)
                    super().end_trial(trial)
            except RuntimeError as error:
                raise ValueError(
                    f"{self.max_consecutive_failed_trials} trials in a row failed; "
                    f"their errors are in {self.folder}"
                ) from error
        self.leave_trial()

    def trial_folder(self, trial: Any) -> Path:
        """The folder of a trial."""
        return self.folder / f"trial_{trial.trial_id}"

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

    @contextlib.contextmanager
    def _shared_state(self) -> Iterator[None]:
        """Context in which the state is that of the folder, and no other's to change.

        At the end it is written, unless there was an error.

        Raises:
            DamagedFolderError: it cannot be read.
        """
        path = self.folder / STATE
        with lock_folder(self.folder, wait=True):
            if path.exists():
                self.set_state(read_json(path))
            yield
            replace_file(path, json.dumps(self.get_state()).encode())

    def _lock(self, trial: Any) -> bool:
        """Whether this process has locked the folder of a trial just now."""
        try:
            self._trial_lock.enter_context(lock_folder(self.trial_folder(trial)))
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


def train_trials(
    search: "Search", report: Callable[[float, str], None] = lambda share, text: None
) -> None:
    """Trains trials of a search in this process until none is left.

    Args:
        search: the search, which has been opened.
        report: is told how much of the search is done, from 0 to 1, and the trial.

    Raises:
        ValueError: too many trials in a row have failed.
        OSError: the disk is full, or a folder cannot be written.
        SystemExit: after SIGTERM or SIGINT; the trial is continued the next time.
    """
    oracle, process = make_oracle(search), f"{socket.gethostname()}-{os.getpid()}"
    try:
        while (trial := oracle.create_trial(process)).status != TrialStatus.STOPPED:
            if trial.status == TrialStatus.IDLE:
                time.sleep(PAUSE)
                continue
            ended, total = len(oracle.end_order), oracle.max_trials
            report(ended / total, f"trial {trial.trial_id}")
            oracle.end_trial(trial, score_of(search, oracle, trial))
    finally:
        oracle.leave_trial()


def score_of(search: "Search", oracle: Any, trial: Any) -> float | None:
    """Trains a trial, or continues it, and gives it the status in which it ended.

    Returns:
        Its score; `None` if it failed, in which case `error.txt` says why.
    """
    folder = oracle.trial_folder(trial)
    try:
        record = run_trial(search, folder, trial.hyperparameters.values)
    except OSError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}".partition("\n")[0]
        print(f"Trial {trial.trial_id} failed. {message}")
        replace_file(folder / ERROR, f"{message}\n".encode())
        is_final = is_due_to_the_point(error)
        trial.status = TrialStatus.FAILED if is_final else TrialStatus.INVALID
        return None
    (folder / ERROR).unlink(missing_ok=True)
    print(record.describe(oracle.objective.name))
    trial.status = TrialStatus.COMPLETED
    return record.score


def is_due_to_the_point(error: Exception) -> bool:
    """Whether a trial would fail again: it diverged, or does not fit into memory."""
    kinds = NonFiniteError, DivergedError, MemoryError
    return isinstance(error, kinds) or type(error).__name__ == "ResourceExhaustedError"
