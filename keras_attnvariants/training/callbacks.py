"""Callbacks that make a Keras `fit` a run that can be killed and resumed."""

import dataclasses
import math
import signal
import threading
import time
from collections.abc import Callable
from collections.abc import Mapping
from types import FrameType
from typing import Any

import keras
import numpy as np

from keras_attnvariants.training.state import NonFiniteError
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.training.state import check_finite
from keras_attnvariants.training.state import to_arrays

Logs = dict[str, Any] | None

# A loss this many times log V, the loss of a uniform guess, means that training failed:
# an untrained model is near log V, and a model that learns is below.
DIVERGED = 4.0

# Seconds after which the first state is saved, whatever the interval in updates.
FIRST_STATE = 60.0


class StoppedBySignal(SystemExit):
    """A signal has ended the training; its state is saved."""


class DivergedError(ArithmeticError):
    """After a period the loss is far above that of a uniform guess."""


@dataclasses.dataclass
class Progress:
    """The progress of a run; shared by its callbacks, written with every state.

    Attributes:
        step: updates done.
        period_end: update after which the current period ends.
        validation_pending: the period's updates are done, its validation is not.
        stopped: a callback has ended the run before its last update.
        logs: the metrics of the current period so far.
        callbacks: the states of callbacks by their names, as they were last saved.
    """

    step: int = 0
    period_end: int = 0
    validation_pending: bool = False
    stopped: bool = False
    logs: dict[str, float] = dataclasses.field(default_factory=dict)
    callbacks: dict[str, Any] = dataclasses.field(default_factory=dict)

    def end_period(self) -> None:
        """Ends the current period here, with a validation."""
        self.period_end, self.validation_pending = self.step, True


class DataclassCallback(keras.callbacks.Callback):
    """Base of callbacks that are dataclasses, whose constructors would skip Keras'."""

    def __post_init__(self) -> None:
        super().__init__()


class StatefulCallback(keras.callbacks.Callback):
    """A callback whose own state is saved with every state of the run.

    Subclass it and pass the callback to `train`. A resumed run restores callbacks by
    `state_name`, even if others were added or removed. The state of a callback that is
    left out is kept.
    """

    @property
    def state_name(self) -> str:
        """Name of the state; by default that of the class.

        Callbacks with the same name are distinguished by their order.
        """
        return type(self).__name__

    def get_state(self) -> dict[str, Any]:
        """State of the callback, a JSON value."""
        return {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores what `get_state` returned."""


@dataclasses.dataclass(eq=False)
class StepCounter(DataclassCallback):
    """Counts updates, and ends a run that fails.

    A run fails if the loss or a weight is not finite, or if after a period the
    validation loss (without validation data, the loss) is more than 4 times that of a
    uniform guess over the `V` classes, log V. It comes first among the callbacks, so
    that such a step is not saved.

    Args:
        progress: where the run stands.
        classes: number of classes `V`.
        metrics: values of the model's metric variables that the next period starts
            with, after a resume in the middle of one; `None` starts from zero.
    """

    progress: Progress
    classes: int
    metrics: list[np.ndarray] | None = None

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self.progress.period_end = self.progress.step + self.params["steps"]
        if self.metrics is None:
            self.progress.logs = {}
        else:
            assign_arrays(self.model.metrics_variables, self.metrics, "metric")
            self.metrics = None

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        progress = self.progress
        progress.step += 1
        progress.validation_pending = progress.step == progress.period_end
        progress.logs = dict(logs or {})
        self._check("loss", progress.logs)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        progress, logs = self.progress, logs or {}
        if progress.step != progress.period_end:
            raise ValueError(
                "`training_data` must give an endless dataset. "
                f"Received: one that ended at step {progress.step}"
            )
        self._check("val_loss", logs)
        try:
            check_finite(to_arrays(self.model.weights), "weight")
        except NonFiniteError as error:
            raise self._error(str(error)) from error
        name = "val_loss" if "val_loss" in logs else "loss"
        uniform = math.log(self.classes)
        if logs.get(name, 0.0) > DIVERGED * uniform:
            raise DivergedError(
                f"step {progress.step}: the {name} is {logs[name]:.4g}, but that "
                f"of a uniform guess over {self.classes} tokens is {uniform:.4g}: the "
                "training has diverged. Start again in another folder with a lower "
                "learning rate, a longer warm-up or `clipnorm`"
            )

    def _check(self, name: str, logs: Mapping[str, Any]) -> None:
        value = logs.get(name, 0.0)
        if not math.isfinite(value):
            raise self._error(f"the {name} is {value}")

    def _error(self, problem: str) -> NonFiniteError:
        return NonFiniteError(
            f"step {self.progress.step}: {problem}. This step was not saved; the "
            "states before it are kept. A lower learning rate, a longer warm-up or "
            "`clipnorm` may help"
        )


class StopRequest:
    """Context that turns the first SIGTERM or SIGINT into a request.

    `number` is the signal received, or None. After the first one the previous handlers
    are restored, so a second signal acts at once. Outside the main thread, where Python
    allows no handlers, signals keep their usual effect.

    Example:

    >>> import os, signal
    >>> with StopRequest() as request:
    ...     os.kill(os.getpid(), signal.SIGTERM)
    >>> request.exit_code
    143
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._former: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        """The exit status by which a shell knows a process ended by this signal."""
        return 128 + (self.number or 0)

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._former[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former.clear()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self.__exit__()


@dataclasses.dataclass(eq=False)
class StateSaver(DataclassCallback):
    """Saves the state every few updates, after each validation, and when stopped.

    The first state is saved after a minute at the latest. On SIGTERM or SIGINT it
    saves, then ends the process with status 143 or 130. It comes last among the
    callbacks, so that a state includes the effects of the others.

    Args:
        progress: where the run stands.
        request: says whether a signal has come.
        save_every: updates between two states.
        save: saves a state.
    """

    progress: Progress
    request: StopRequest
    save_every: int
    save: Callable[[], None]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._first_by = time.monotonic() + FIRST_STATE

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        progress = self.progress
        if self.model.stop_training:
            # `fit` leaves out the rest of the period, and validates.
            progress.end_period()
            progress.stopped = True
        is_late = time.monotonic() >= self._first_by
        self._save_if(is_late or progress.step % self.save_every == 0)

    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._save_if(False)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self.progress.validation_pending = False
        self.progress.stopped |= bool(self.model.stop_training)
        self._save_if(True)

    def _save_if(self, is_due: bool) -> None:
        if is_due or self.request.number:
            self.save()
            self._first_by = math.inf
        if self.request.number:
            raise StoppedBySignal(self.request.exit_code)
