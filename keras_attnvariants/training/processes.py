"""Training by several processes: process 0 has the folder, and shares what it reads."""

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_attnvariants.backend import distribution
from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.callbacks import Stopper
from keras_attnvariants.training.folder import RunFolder
from keras_attnvariants.training.folder import TrainingResult
from keras_attnvariants.training.limit import TimeIsUp
from keras_attnvariants.training.loop import Training
from keras_attnvariants.training.loop import TrainingLoop
from keras_attnvariants.training.settings import Difference
from keras_attnvariants.training.settings import DifferentSettingsError
from keras_attnvariants.training.settings import differences_of
from keras_attnvariants.training.signals import StopRequest
from keras_attnvariants.training.state import LoadedState
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.utils.locks import lock_folder


class ProcessLostError(OSError):
    """The processes of a training could not compute together.

    Args:
        error: what JAX has raised.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(
            "another process has ended, or cannot be reached: see its last lines, and "
            "start all processes again with the same command; the run continues from "
            f"its last state. Received: {error!s:.200}"
        )


class DifferentProcessesError(DifferentSettingsError):
    """The processes of a training were given different settings."""

    def __init__(self, process: int, differences: Sequence[Difference]) -> None:
        self.process = process
        super().__init__(Path(f"process-{process}"), differences)

    def _told(self, received: str) -> str:
        return (
            f"process {self.process} has other settings or data than process 0: give "
            f"all of them the same. Received: {received}"
        )


def check_same(**settings: Any) -> None:
    """Compares settings, which JSON can hold, with those of all other processes.

    Raises:
        DifferentProcessesError: names what differs, in all processes.
    """
    first, *others = distribution.gathered(settings)
    for number, other in enumerate(others, start=1):
        if different := differences_of(first, other):
            raise DifferentProcessesError(number, different)


def locked(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Context in which no other training may write into a folder.

    Raises:
        FolderInUseError: another one does.
    """
    first = distribution.process_number() == 0
    return lock_folder(folder) if first else contextlib.nullcontext()


def folder_of(
    path: Path, training: Training, loop: TrainingLoop, request: StopRequest
) -> "RunFolder | DistantFolder":
    """The folder of a run, as this process has it."""
    if distribution.process_count() == 1:
        return RunFolder(path, training, loop, request)
    if distribution.process_number() == 0:
        return SharedFolder(path, training, loop, request)
    return DistantFolder(training, loop, request)


class SharedFolder(RunFolder):
    """The folder of a run, from which process 0 tells the others what they need."""

    def __init__(
        self, path: Path, training: Training, loop: TrainingLoop, request: StopRequest
    ) -> None:
        self._together = Together(request)
        super().__init__(path, training, loop, self._together.request)

    def open(
        self, saved: dict[str, Any], settings: dict[str, Any], resume: bool
    ) -> LoadedState | None:
        check_same(**settings)
        return share_state(super().open(saved, settings, resume))

    def start(
        self, state: LoadedState | None, given: Sequence[keras.callbacks.Callback]
    ) -> list[keras.callbacks.Callback]:
        return super().start(state, [*given, self._together])

    def averages(self) -> list[np.ndarray]:
        if not self._loop.is_done:
            distribution.gathered(None)  # the others wait for another period
        return distribution.from_first_process(super().averages())

    def finish(self, scores: dict[str, float]) -> TrainingResult:
        result = super().finish(scores)
        distribution.gathered(dataclasses.asdict(result))
        return result

    def _score_best(self) -> None:
        self._best.best = None  # the others would not evaluate it


class DistantFolder:
    """What another process than the first one has of the folder of a run.

    Its methods are those of `RunFolder`, called in the same order.
    """

    def __init__(
        self, training: Training, loop: TrainingLoop, request: StopRequest
    ) -> None:
        self._model = training.model
        self._loop = loop
        self._together = Together(request)

    def open(
        self, saved: dict[str, Any], settings: dict[str, Any], resume: bool
    ) -> LoadedState | None:
        """The state that process 0 has loaded."""
        check_same(**settings)
        return share_state(None)

    def start(
        self, state: LoadedState | None, given: Sequence[keras.callbacks.Callback]
    ) -> list[keras.callbacks.Callback]:
        """The callbacks that keep the processes together."""
        loop, request = self._loop, self._together.request
        stopper = Stopper(loop.progress, request, loop.take_out_averages)
        return [self._together, stopper]

    def averages(self) -> list[np.ndarray]:
        """The averages of process 0."""
        return distribution.from_first_process(to_arrays(self._model.weights))

    def finish(self, scores: dict[str, float]) -> TrainingResult:
        """The result of process 0."""
        return TrainingResult(**distribution.gathered(None)[0])


class Together(keras.callbacks.Callback):
    """Lets all processes begin periods, and end the training, at the same update.

    It comes after the callbacks that decide, which process 0 alone has.

    Args:
        own: the signal that this process has got.

    Attributes:
        request: the signal that all of them answer.
    """

    def __init__(self, own: StopRequest) -> None:
        super().__init__()
        self._own = own
        self.request = StopRequest()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        if not distribution.gathered(True)[0]:
            raise TimeIsUp

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        asked = self._own.number or 0, bool(self.model.stop_training)
        number, stop = distribution.largest(asked)
        self.request.number = number or None
        self.model.stop_training = bool(stop)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        [stop] = distribution.largest([bool(self.model.stop_training)])
        self.model.stop_training = bool(stop)


def share_state(state: LoadedState | None) -> LoadedState | None:
    """The state that process 0 has loaded."""
    kinds: Any = state and {
        group: [(array.shape, array.dtype.name) for array in arrays]
        for group, arrays in state.variables.items()
    }
    kinds, progress = distribution.gathered([kinds, state and state.progress])[0]
    if kinds is None:
        return None
    variables = {
        group: distribution.from_first_process(
            state.variables[group]
            if state
            else [np.zeros(shape, np.dtype(dtype)) for shape, dtype in of_group]
        )
        for group, of_group in kinds.items()
    }
    return LoadedState(variables, progress)
