"""The tuner: a trial is a run of ours, which a kill does not lose."""

import time
from pathlib import Path
from typing import Any

import keras
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.errors import FailedTrialError
from keras_tuner.errors import FatalError
from keras_tuner.src.engine.trial import TrialStatus

from keras_attnvariants.training import DivergedError
from keras_attnvariants.training import NonFiniteError
from keras_attnvariants.training import load_run
from keras_attnvariants.tuning.records import OBJECTIVES
from keras_attnvariants.tuning.records import TrialRecord
from keras_attnvariants.tuning.trials import Trials
from keras_attnvariants.tuning.workers import chief_address
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.locks import FolderInUseError

ERROR = "error.txt"
# Seconds until a worker without a trial asks again.
PAUSE = 1.0


class RunTuner(BaseTuner):
    """Runs the trials that an oracle proposes.

    Args:
        oracle: knows the whole space.
        trials: what all trials share.
        folder: of the search; each trial has a folder in it.
    """

    oracle: Any

    def __init__(self, oracle: Any, trials: Trials, folder: Path) -> None:
        self._trials = trials
        folder = folder.resolve()
        super().__init__(oracle, directory=folder.parent, project_name=folder.name)
        if self._is_worker():
            from keras_attnvariants.tuning.client import PatientOracle

            self.oracle = PatientOracle(self.oracle, chief_address())

    def _populate_initial_space(self) -> None:
        """The space was declared with the oracle; what is left is its state."""
        if not self._is_worker() and Path(self.oracle._get_oracle_fname()).exists():
            self.oracle.reload()

    def save(self) -> None:
        """Only an oracle has a state."""
        if not self._is_worker():
            self.oracle.save()

    def search(self) -> None:
        """Run trials until the oracle has no more.

        Raises:
            ChiefGoneError: this is a worker, and no chief answers.
            OSError: the disk is full, or a folder cannot be written.
            SearchFailedError: too many trials in a row failed.
            SystemExit: after SIGTERM or SIGINT; the trial is continued the next time.
        """
        while True:
            trial = self.oracle.create_trial(self.tuner_id)
            if trial.status == TrialStatus.STOPPED:
                return
            if trial.status == TrialStatus.IDLE:
                time.sleep(PAUSE)
                continue
            try:
                self._try_run_and_update_trial(trial)
            except FatalError as error:
                raise error.__cause__ or error from None
            self.on_trial_end(trial)

    def run_trial(self, trial: Any) -> dict[str, float]:
        """Train a trial, or continue it where it was killed."""
        folder = Path(self.get_trial_dir(trial.trial_id))
        try:
            record = self._run(folder, trial.hyperparameters.values)
        except OSError as error:
            raise FatalError(str(error)) from error
        except Exception as error:
            message = f"{type(error).__name__}: {error}".partition("\n")[0]
            print(f"Trial {trial.trial_id} failed. {message}")
            write_file(folder / ERROR, f"{message}\n".encode())
            if is_due_to_the_point(error):
                raise FailedTrialError(message) from error
            raise
        (folder / ERROR).unlink(missing_ok=True)
        print(line(record, OBJECTIVES[self._trials.objective][0]))
        return {self.oracle.objective.name: record.score}

    def _run(self, folder: Path, values: dict[str, Any]) -> TrialRecord:
        """The record of a trial, as soon as no other process is at work on it."""
        while True:
            try:
                return self._trials.run(folder, values)
            except FolderInUseError:
                time.sleep(PAUSE)

    def load_model(self, trial: Any) -> keras.Model:
        """The model of the best run of a trial."""
        folder = Path(self.get_trial_dir(trial.trial_id))
        seed = TrialRecord.read(folder).best_seed
        return load_run(folder / f"seed-{seed}").model


def is_due_to_the_point(error: Exception) -> bool:
    """Whether a trial would fail again: it diverged, or does not fit into memory."""
    kinds = NonFiniteError, DivergedError, MemoryError
    return isinstance(error, kinds) or type(error).__name__ == "ResourceExhaustedError"


def line(record: TrialRecord, metric: str) -> str:
    """What a trial showed, in one line."""
    spread = f" ± {record.spread:.2g}" if len(record.scores) > 1 else ""
    return (
        f"Trial {record.trial}: {metric} {record.score:.4g}{spread}, "
        f"{record.parameters:,} parameters, {record.updates:,} updates, "
        f"{record.minutes:.1f} min"
    )
