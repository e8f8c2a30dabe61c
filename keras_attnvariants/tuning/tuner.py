"""The tuner, whose trials are runs of ours; and a model builder for other tuners."""

import time
from pathlib import Path
from typing import Any

import keras
import keras_tuner
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.errors import FailedTrialError
from keras_tuner.errors import FatalError

from keras_attnvariants.presets import Preset
from keras_attnvariants.training import DivergedError
from keras_attnvariants.training import NonFiniteError
from keras_attnvariants.training import load_run
from keras_attnvariants.tuning.results import ERROR
from keras_attnvariants.tuning.results import TrialRecord
from keras_attnvariants.tuning.space import SearchSpace
from keras_attnvariants.tuning.trial_runs import TrialRunner
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.locks import FolderInUseError

# Seconds until an oracle without a trial is asked again.
PAUSE = 1.0


class RunTuner(BaseTuner):
    """Trains the trials that an oracle proposes, each as a run that can be resumed.

    Args:
        oracle: knows the whole space, and saves itself.
        trials: trains them.
        folder: of the search; each trial has a folder in it.
    """

    oracle: Any

    def __init__(self, oracle: Any, trials: TrialRunner, folder: Path) -> None:
        self._trials = trials
        self._is_waiting = False
        folder = folder.resolve()
        super().__init__(oracle, directory=folder.parent, project_name=folder.name)

    def save(self) -> None:
        """Write nothing: only an oracle has a state."""

    def search(self) -> None:
        """Train trials until the oracle has no more.

        Raises:
            OSError: the disk is full, or a folder cannot be written.
            SystemExit: after SIGTERM or SIGINT; the trial is continued the next time.
        """
        try:
            super().search()
        except FatalError as error:
            raise error.__cause__ or error from None

    def pre_create_trial(self) -> None:
        """Wait a little if the last answer was to ask again."""
        if self._is_waiting:
            time.sleep(PAUSE)
        self._is_waiting = True

    def on_trial_begin(self, trial: Any) -> None:
        """Note that the answer was a trial."""
        self._is_waiting = False

    def run_trial(self, trial: Any) -> dict[str, float]:
        """Train a trial, or continue it where it was killed.

        Returns:
            The score by the name of the objective.
        """
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
        print(record.describe(self.oracle.objective.name))
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
        return load_run(TrialRecord.read(folder).run_folder(folder)).model


def is_due_to_the_point(error: Exception) -> bool:
    """Whether a trial would fail again: it diverged, or does not fit into memory."""
    kinds = NonFiniteError, DivergedError, MemoryError
    return isinstance(error, kinds) or type(error).__name__ == "ResourceExhaustedError"


class PresetHyperModel(keras_tuner.HyperModel):
    """Builds the models of a space, for use with tuners other than `RunTuner`.

    `hypermodel.space.hyperparameters(preset)` is the whole space; give it to the tuner
    as `hyperparameters`, so that it is declared before the search starts.

    Args:
        preset: built where the space says nothing else.
        space: the dimensions; its `training` part is no part of the model.
        vocabulary_size: of the joint vocabulary; `None` for the preset's.
    """

    def __init__(
        self, preset: Preset, space: SearchSpace, vocabulary_size: int | None = None
    ) -> None:
        super().__init__()
        self.preset = preset
        self.space = space
        self.vocabulary_size = vocabulary_size

    def declare_hyperparameters(self, hp: Any) -> None:
        """Add all dimensions."""
        hp.merge(self.space.hyperparameters(self.preset))

    def build(self, hp: Any) -> keras.Model:
        """The model of a point, not compiled."""
        arguments = self.space.arguments(self.preset, hp.values)
        return self.preset.build(self.vocabulary_size, **arguments.sizes)
