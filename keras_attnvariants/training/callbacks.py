"""Callbacks that make a Keras `fit` a run that can be killed and resumed."""

import dataclasses
import json
import math
import time
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_attnvariants.backend import local_value
from keras_attnvariants.training.signals import StopRequest
from keras_attnvariants.training.state import NonFiniteError
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.training.state import check_finite
from keras_attnvariants.training.state import to_arrays

Logs = dict[str, Any] | None

# A loss this many times that of a uniform guess, log V, comes from training that went
# wrong: an untrained model is near log V, and a model that learns is below.
DIVERGED = 4.0


class StoppedBySignal(SystemExit):
    """A signal has ended the training, whose state is saved."""


class DivergedError(ArithmeticError):
    """After a period the loss is far above that of a uniform guess."""


@dataclasses.dataclass
class Progress:
    """Where a run stands; shared by its callbacks, written with every state.

    Attributes:
        step: updates done.
        period_end: update after which the current period ends.
        validation_pending: the period's updates are done, its validation is not.
        stopped: a callback has ended the run before its last update.
        logs: the metrics of the current period so far.
    """

    step: int = 0
    period_end: int = 0
    validation_pending: bool = False
    stopped: bool = False
    logs: dict[str, float] = dataclasses.field(default_factory=dict)


class StatefulCallback(keras.callbacks.Callback):
    """A callback whose own state is saved with every state of the run.

    Subclass it and pass the callback to `train`. When a run is resumed, a callback
    finds its state by `state_name`, whichever others come or go; the state of one that
    is left out waits for it.
    """

    @property
    def state_name(self) -> str:
        """Name of the state: that of the class, unless a subclass says otherwise.

        Callbacks of one name are told apart by their order.
        """
        return type(self).__name__

    def get_state(self) -> dict[str, Any]:
        """State of the callback, a JSON value."""
        return {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned."""


class StepCounter(keras.callbacks.Callback):
    """Counts updates, and ends a run that went wrong.

    It went wrong if the loss or a weight is not finite, or if after a period the
    validation loss (without validation data, the loss) is more than 4 times that of a
    uniform guess over the `V` classes, log V. It comes first among the callbacks, so
    that such a step is not saved.

    Args:
        progress: where the run stands.
        classes: number of classes `V`.

    Attributes:
        metrics: values of the model's metric variables that the next period starts
            with, after a resume in the middle of one; None starts from zero.
    """

    def __init__(self, progress: Progress, classes: int) -> None:
        super().__init__()
        self._progress = progress
        self._classes = classes
        self.metrics: list[np.ndarray] | None = None

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._progress.period_end = self._progress.step + self.params["steps"]
        if self.metrics is not None:
            assign_arrays(self.model.metrics_variables, self.metrics, "metric")
            self.metrics = None

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        progress = self._progress
        progress.step += 1
        progress.validation_pending = progress.step == progress.period_end
        progress.logs = dict(logs or {})
        self._check("loss", progress.logs)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        progress = self._progress
        if progress.step != progress.period_end:
            raise ValueError(
                "`training_data` must give an endless dataset. "
                f"Received: one that ended at step {progress.step}"
            )
        self._check("val_loss", logs or {})
        try:
            check_finite(to_arrays(self.model.weights), "weight")
        except NonFiniteError as error:
            raise self._error(str(error)) from error
        self._check_divergence(logs or {})

    def _check_divergence(self, logs: Mapping[str, Any]) -> None:
        name = "val_loss" if "val_loss" in logs else "loss"
        uniform = math.log(self._classes)
        if logs.get(name, 0.0) > DIVERGED * uniform:
            raise DivergedError(
                f"step {self._progress.step}: the {name} is {logs[name]:.4g}, but that "
                f"of a uniform guess over {self._classes} tokens is {uniform:.4g}: the "
                "training has diverged. Start again in another folder with a lower "
                "learning rate, a longer warm-up or `clipnorm`"
            )

    def _check(self, name: str, logs: Mapping[str, Any]) -> None:
        value = logs.get(name, 0.0)
        if not math.isfinite(value):
            raise self._error(f"the {name} is {value}")

    def _error(self, what: str) -> NonFiniteError:
        return NonFiniteError(
            f"step {self._progress.step}: {what}. This step was not saved; the "
            "states before it are kept. A lower learning rate, a longer warm-up or "
            "`clipnorm` may help"
        )


class Stopper(keras.callbacks.Callback):
    """Ends training between two updates, when a signal or a callback asks for it.

    On SIGTERM or SIGINT it ends the process after the current update (or batch of
    validation) with status 143 or 130. It comes last among the callbacks.

    Args:
        progress: where the run stands.
        request: tells whether a signal has come.
        before_saving: gives the model its own weights back if it has others.
    """

    def __init__(
        self,
        progress: Progress,
        request: StopRequest,
        before_saving: Callable[[], None],
    ) -> None:
        super().__init__()
        self._progress = progress
        self._request = request
        self._before_saving = before_saving

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        progress = self._progress
        if self.model.stop_training:
            # `fit` leaves out the rest of the period, and validates.
            progress.period_end = progress.step
            progress.stopped = progress.validation_pending = True
        if self._request.number:
            self._save()

    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None:
        if self._request.number:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self._progress.validation_pending = False
        self._progress.stopped |= bool(self.model.stop_training)
        self._save()

    def _save(self) -> None:
        self._before_saving()
        self._write()
        if self._request.number:
            raise StoppedBySignal(self._request.exit_code)

    def _write(self) -> None:
        """Nothing is kept."""


class StateSaver(Stopper):
    """Saves the state every few updates, after each validation, and when stopped.

    The state includes what the callbacks before it did.

    Args:
        progress, request, before_saving: as for `Stopper`.
        store: where states are kept.
        stateful: callbacks whose state is saved as well, by name.
        save_every: updates between two states.

    Attributes:
        absent: states of callbacks that this call of `train` was not given, by name;
            saved again as they are.
    """

    def __init__(
        self,
        progress: Progress,
        request: StopRequest,
        before_saving: Callable[[], None],
        store: TrainingState,
        stateful: Mapping[str, StatefulCallback],
        save_every: int,
    ) -> None:
        super().__init__(progress, request, before_saving)
        self._store = store
        self._stateful = stateful
        self._save_every = save_every
        self.absent: dict[str, Any] = {}

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self._progress.step % self._save_every == 0:
            self._save()

    def _write(self) -> None:
        model = self.model
        variables = {
            "model": model.variables,
            "optimizer": model.optimizer.variables,
            "metrics": model.metrics_variables,
        }
        states = {name: c.get_state() for name, c in self._stateful.items()}
        states = self.absent | states
        progress = dataclasses.asdict(self._progress) | {"callbacks": states}
        path = self._store.save(variables, progress)
        if self._request.number:
            print(f"\nStopped by a signal at step {self._progress.step}; saved {path}.")


class JsonLinesLogger(StatefulCallback):
    """Log with one JSON object a line: every few updates, and after each period.

    Every line has `event` ("updates", "period", or "averaged" at the end), `step`,
    `seconds` of the run so far and the metrics; a line about updates also has the
    `learning_rate` of the next one and `tokens_per_second`, the target tokens since the
    last line without the time of validations. A number that is not finite becomes
    null. When a run is resumed, lines after the state it resumes from are cut off.

    Args:
        path: the file.
        progress: where the run stands.
        log_every: updates between two lines.
    """

    def __init__(self, path: Path, progress: Progress, log_every: int) -> None:
        super().__init__()
        self._path = path
        self._progress = progress
        self._log_every = log_every
        self._seconds = 0.0  # up to the last line
        self._started = time.perf_counter()
        self._tokens = 0.0  # at the last line, of this period
        self._seen_tokens = 0.0

    def get_state(self) -> dict[str, Any]:
        size = self._path.stat().st_size if self._path.exists() else 0
        seconds = self._seconds + time.perf_counter() - self._started
        return {"bytes": size, "seconds": seconds, "tokens": self._seen_tokens}

    def set_state(self, state: Mapping[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.truncate(min(file.tell(), state["bytes"]))
        self._seconds = state["seconds"]
        self._tokens = self._seen_tokens = state["tokens"]

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._tick()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._seen_tokens = (logs or {}).get("tokens", 0.0)
        at_end = self._progress.step == self._progress.period_end
        if at_end or self._progress.step % self._log_every == 0:
            self._write_updates(logs or {})

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self._tick()
        self.write("period", logs or {})
        self._tokens = self._seen_tokens = 0.0

    def write(self, event: str, values: Mapping[str, Any]) -> None:
        """Append one line about the current step."""
        record = {"event": event, "step": self._progress.step}
        record["seconds"] = round(self._seconds, 3)
        for name, value in values.items():
            record[name] = float(value) if math.isfinite(value) else None
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def _write_updates(self, logs: Mapping[str, Any]) -> None:
        seconds = self._tick()
        speed = (self._seen_tokens - self._tokens) / max(seconds, 1e-9)
        self._tokens = self._seen_tokens
        rate = learning_rate(self.model.optimizer)
        self.write(
            "updates",
            {"learning_rate": rate, "tokens_per_second": round(speed, 1), **logs},
        )

    def _tick(self) -> float:
        """Add the time since the last call to the run's; returns that time."""
        now = time.perf_counter()
        elapsed, self._started = now - self._started, now
        self._seconds += elapsed
        return elapsed


def learning_rate(optimizer: keras.optimizers.Optimizer) -> float:
    """The rate of the next update, computed by this process alone."""
    # Mixed float16 wraps the optimizer.
    updates = getattr(optimizer, "inner_optimizer", optimizer).iterations
    with keras.StatelessScope(state_mapping=[(updates, local_value(updates))]):
        return float(optimizer.learning_rate)
