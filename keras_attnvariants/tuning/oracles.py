"""keras-tuner's oracles for searches that processes share and that survive kills."""

import contextlib
import json
import math
import os
import socket
import time
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
from keras_attnvariants.data.tasks import higher_is_better
from keras_attnvariants.training import DivergedError
from keras_attnvariants.training import NonFiniteError
from keras_attnvariants.tuning.job_processes import Report
from keras_attnvariants.tuning.results import ERROR
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
# Requests for a point before the space counts as exhausted. Each time, keras-tuner
# draws up to 20 points.
DRAWS = 100
# A trial that failed for a reason other than its point is run again once.
RETRIES = 1
MAX_FAILURES = 3
# Seconds between two requests for a trial, while other processes may leave theirs.
PAUSE = 1.0


class SharedOracle(Oracle):
    """Mixin for an oracle that processes share through a file that is always whole.

    Each process reads the file, decides with it, and writes it before another process
    reads it. It locks the folder of its trial. The operating system releases the lock
    when the process ends: then another process continues the trial.

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
        # Holds the lock of this process's trial.
        self._trial_lock = contextlib.ExitStack()

    def populate_space(self, trial_id: str) -> dict[str, Any]:
        """A new point, even if few points of a small space are left."""
        for _ in range(DRAWS):
            found = super().populate_space(trial_id)
            if found["status"] != TrialStatus.STOPPED:
                break
        return found

    def create_trial(self, tuner_id: str) -> Any:
        """A trial whose process has ended, or a new one.

        While others may still leave their trials, a process without a trial is told to
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
        """Record the end of a trial, only once even if two processes ran it.

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
        """Release the trial of this process, if any, for another to continue."""
        self._trial_lock.close()

    def get_state(self) -> dict[str, Any]:
        """The state with all trials."""
        trials = [trial.get_state() for trial in self.trials.values()]
        return {**super().get_state(), "trials": trials}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state with all trials."""
        trials = [Trial.from_state(trial) for trial in state["trials"]]
        self.trials = {trial.trial_id: trial for trial in trials}
        super().set_state(state)

    def save(self) -> None:
        """Do nothing: each decision is written when it is complete."""

    @contextlib.contextmanager
    def _shared_state(self) -> Iterator[None]:
        """Context with the state of the folder, which nobody else can change meanwhile.

        At the end the state is written, unless there was an error.

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
        """Lock the folder of a trial, and return whether that succeeded."""
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
    """A new oracle for a search, with the whole space."""
    space = search.space.hyperparameters(search.preset)
    direction = "max" if higher_is_better(search.objective) else "min"
    options = {
        "folder": search.folder,
        "objective": Objective(f"val_{search.objective}", direction),
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
    # Half of the trials, but no more than keras-tuner's default.
    half = math.ceil(trials / 2)
    options["num_initial_points"] = max(3, min(3 * len(space.space), half))
    return BayesianOracle(**options)


def train_trials(search: "Search", report: Report = lambda share, text: None) -> None:
    """Trains trials of a search in this process until none is left.

    Args:
        search: the search, which has been opened.
        report: called with the share of the search that is done, and the trial.

    Raises:
        ValueError: too many trials in a row have failed.
        OSError: the disk is full, or a folder cannot be written.
        SystemExit: after SIGTERM or SIGINT; the next call continues the trial.
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
    """Trains or continues a trial, and sets its final status.

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
        is_final = would_fail_again(error)
        trial.status = TrialStatus.FAILED if is_final else TrialStatus.INVALID
        return None
    (folder / ERROR).unlink(missing_ok=True)
    print(record.describe(oracle.objective.name))
    trial.status = TrialStatus.COMPLETED
    return record.score


def would_fail_again(error: Exception) -> bool:
    """Whether a trial would fail again: it diverged, or does not fit into memory."""
    kinds = NonFiniteError, DivergedError, MemoryError
    return isinstance(error, kinds) or type(error).__name__ == "ResourceExhaustedError"
