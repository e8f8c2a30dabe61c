"""A tuner that trains the trials of a search, alone or among others."""

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.errors import FailedTrialError
from keras_tuner.errors import FatalError

from keras_attnvariants.training import DivergedError
from keras_attnvariants.training import NonFiniteError
from keras_attnvariants.tuning.results import ERROR
from keras_attnvariants.tuning.results import TrialRecord
from keras_attnvariants.utils.files import replace_file

# Seconds between two questions for a trial.
PAUSE = 0.2


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
        self._report(ended / total if total else 0.0, f"trial {trial.trial_id}")

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
