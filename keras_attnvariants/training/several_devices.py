"""Training on several devices, in one process or many, as if there were one.

With several processes, process 0 has the folder of the run and shares what it reads.
The training itself does not notice: it gets batches, a folder that behaves like that of
a single process, and a callback that makes all processes stop at the same update.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_attnvariants import backend
from keras_attnvariants.backend import distribution
from keras_attnvariants.backend.layouts import DividedModel
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.callbacks import StateSaver
from keras_attnvariants.training.callbacks import StoppedBySignal
from keras_attnvariants.training.callbacks import StopRequest
from keras_attnvariants.training.run_folder import RunFolder
from keras_attnvariants.training.run_folder import TrainingResult
from keras_attnvariants.training.run_settings import DifferentSettingsError
from keras_attnvariants.training.run_settings import differences_of
from keras_attnvariants.training.state import LoadedState
from keras_attnvariants.training.state import clear_full_disk
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.training.training_loop import TrainingLoop
from keras_attnvariants.utils.checks import check_address
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.locks import lock_folder


class ProcessLostError(OSError):
    """The processes of a training could not compute together.

    Args:
        error: the error that JAX has raised.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(
            "another process has ended, or cannot be reached: see its last lines, and "
            "start all processes again with the same command; the run continues from "
            f"its last state. Received: {error!s:.200}"
        )


class DifferentProcessesError(DifferentSettingsError):
    """The processes of a training were given different settings."""

    problem = (
        "process {} has other settings or data than process 0: give all of them the "
        "same"
    )


@contextlib.contextmanager
def several_devices(
    devices: int | None = None,
    *,
    model_parallel: int = 1,
    coordinator: str | None = None,
    process: int = 0,
    processes: int = 1,
    wait: float = 300.0,
) -> Iterator[None]:
    """Context in which models are built, and trained, on several devices.

    The rows of a batch are divided among the devices, and the losses summed over the
    real tokens of all: an update equals that of one device, up to rounding, with the
    same dropout. A run may be resumed on another number of devices.

    With several processes, each runs the same program. Only process 0 writes the folder
    of the run, shows the progress, runs the caller's callbacks and translates in
    validations; callbacks must not call the model. If a process ends, JAX ends the
    others, and the run can be resumed.

    A model that is too large for one device is divided among `model_parallel` of them:
    embeddings, feed-forward layers and the projections of attention, with their
    optimizer states. Such a group gets the rows of one device.

    Args:
        devices: number of devices of each process; `None` for all.
        model_parallel: number of devices of a process that share one model.
        coordinator: `"host:port"` of process 0, where it listens for the others.
        process: number of this process, from 0.
        processes: number of processes, on one machine or on several.
        wait: how long to wait for all processes, in seconds.

    Raises:
        ValueError: the backend is not JAX, there are fewer devices, an argument
            is out of range, or processes were given different ones.
        OSError: process 0 cannot listen at its port.
        ProcessLostError: another process has ended. Often JAX ends this one before.

    Example:

    ```python
    with kav.training.several_devices(4):
        kav.training.train_preset(preset, corpus, "runs/hc-sa")
    ```
    """
    check_optional_integer("devices", devices)
    check_integer("model_parallel", model_parallel)
    check_positive("wait", wait)
    _check_processes(coordinator, process, processes)
    if coordinator is not None:
        text = f"Process {process} waits for all {processes} at {coordinator}."
        print(text, flush=True)
        distribution.join(coordinator, process, processes, wait)
    try:
        names = distribution.device_names(devices)
        if (each := len(names) // processes) % model_parallel:
            raise ValueError(
                "`model_parallel` must divide the number of devices of a process, "
                f"{each}. Received: {model_parallel}"
            )
        check_same(devices=devices, model_parallel=model_parallel, processes=processes)
        with DividedModel(names, model_parallel).scope():
            yield
            distribution.wait_for_all()
    except StoppedBySignal:
        distribution.wait_for_all()  # process 0 may save for longer than JAX waits
        raise
    except Exception as error:
        if processes > 1 and distribution.is_failure_of_runtime(error):
            raise ProcessLostError(error) from error
        raise


def _check_processes(coordinator: str | None, process: int, processes: int) -> None:
    check_choice("process", process, range(check_integer("processes", processes)))
    if (coordinator is None) != (processes == 1):
        raise ValueError(
            "`coordinator` and `processes` must be given together. "
            f"Received: coordinator={coordinator!r}, processes={processes}"
        )
    if coordinator is not None:
        check_address("coordinator", coordinator)
    if backend.name() != "jax":
        raise ValueError(
            "Several devices need JAX: install it, and set the environment variable "
            f"KERAS_BACKEND=jax. Received: the backend {backend.name()}"
        )


def check_same(**settings: Any) -> None:
    """Compares JSON-serializable settings with those of all other processes.

    Raises:
        DifferentProcessesError: names what differs, in all processes.
    """
    first, *others = distribution.gathered(settings)
    for number, other in enumerate(others, start=1):
        if different := differences_of(first, other):
            raise DifferentProcessesError(number, different)


@contextlib.contextmanager
def lock_run(run_dir: Path) -> Iterator[None]:
    """Context in which no other training may write into a folder.

    Raises:
        FolderInUseError: another training does.
        StateWriteError: the disk is full.
    """
    if distribution.process_number():
        yield
        return
    with clear_full_disk(run_dir), lock_folder(run_dir):
        yield


def make_run_folder(
    path: Path,
    loop: TrainingLoop,
    tokenizer: Tokenizer | None,
    given: Sequence[keras.callbacks.Callback],
    request: StopRequest,
) -> "RunFolder | SharedFolder":
    """The folder of a run, as this process sees it; arguments as for `RunFolder`."""
    if distribution.process_count() == 1:
        return RunFolder(path, loop, tokenizer, given, request)
    together = StopTogether(request)
    if distribution.process_number():
        return SharedFolder(None, loop, together)
    own = RunFolder(path, loop, tokenizer, given, together.request)
    return SharedFolder(own, loop, together)


@dataclasses.dataclass
class SharedFolder:
    """The folder of a run in all processes, with the methods of `RunFolder`.

    Args:
        own: the folder, in process 0; `None` in the others.
        loop: trains the model.
        together: makes the processes stop at the same update.
    """

    own: RunFolder | None
    loop: TrainingLoop
    together: "StopTogether"

    def open(
        self, settings: dict[str, Any]
    ) -> tuple[LoadedState | None, list[keras.callbacks.Callback]]:
        """The state to continue from, and the callbacks of this process."""
        check_same(**settings)
        loop, request = self.loop, self.together.request
        if self.own is None:
            every, save = loop.config.save_every, loop.averages.restore_weights
            state, loop.verbose = None, 0
            callbacks = [StateSaver(loop.progress, request, every, save)]
        else:
            state, callbacks = self.own.open(settings)
        # After the callbacks that decide, which only process 0 has.
        callbacks.insert(-1, self.together)
        [progress, *_] = distribution.gathered(state and state.progress)
        if progress is None:
            return None, callbacks
        variables = {
            group: distribution.from_first_process(
                state.variables[group] if state else to_arrays(values)
            )
            for group, values in loop.variables().items()
        }
        return LoadedState(variables, progress), callbacks

    def averages(self) -> list[np.ndarray]:
        """The mean of the last validated weights."""
        own = self.own.averages() if self.own else to_arrays(self.loop.model.weights)
        return distribution.from_first_process(own)

    def finish(self, scores: dict[str, float]) -> TrainingResult:
        """The result of process 0."""
        result = self.own and dataclasses.asdict(self.own.finish(scores))
        return TrainingResult(**distribution.gathered(result)[0])


class StopTogether(keras.callbacks.Callback):
    """Makes all processes end the training at the same update.

    Args:
        own: the signal that this process has received.

    Attributes:
        request: the signal that all of them answer.
    """

    def __init__(self, own: StopRequest) -> None:
        super().__init__()
        self._own = own
        self.request = StopRequest()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        asked = self._own.number or 0, bool(self.model.stop_training)
        number, stop = distribution.largest(asked)
        self.request.number = number or None
        self.model.stop_training = bool(stop)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        [stop] = distribution.largest([bool(self.model.stop_training)])
        self.model.stop_training = bool(stop)
