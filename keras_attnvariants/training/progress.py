"""The progress of a training: a limit of time, a bar on a terminal, and the log."""

import contextlib
import json
import math
import time
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import TypeGuard

import keras
from rich.console import Console

from keras_attnvariants.backend import local_value
from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.progress import Bar
from keras_attnvariants.utils.progress import clock

# The metrics that a line about a validation has room for, and their decimals.
SHOWN = {"loss": 3, "val_loss": 3, "val_bleu": 2}


class TimeLimit(StatefulCallback):
    """Ends training after an update, early enough to validate once more in time.

    Time counts from the beginning of the first `train` or `train_preset` that it is
    given to, over all resumes of a run; a later call with a higher limit continues it.
    The run ends with a validation and a saved state, and with a validation of the
    averaged weights. What these will take is known from the validation before; `train`
    makes one before the first update.

    Args:
        minutes: limit for all of the training: the vocabulary if that is learned,
            updates and validations.

    Attributes:
        limit: the same in seconds.
        seconds: seconds that have passed so far.

    Raises:
        ValueError: `minutes` is not positive.

    Example:

        kav.training.train(model, tokenizer, dataset_at, "runs/first", config,
                           callbacks=[kav.training.TimeLimit(minutes=30)])
    """

    def __init__(self, minutes: float) -> None:
        super().__init__()
        self.limit = 60.0 * check_positive("minutes", minutes)
        self.seconds = 0.0
        self._last: float | None = None
        self._updated = 0.0  # `seconds` after the last update
        self._validation = 0.0  # seconds of a validation, with all that is saved then
        self._has_ended = False

    @property
    def state_name(self) -> str:
        return TimeLimit.__name__  # that of subclasses, too

    def get_state(self) -> dict[str, Any]:
        self.tick()
        ended = self.limit if self._has_ended else None
        return {"seconds": self.seconds, "ended": ended}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.seconds += state["seconds"]

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self.tick()
        self._updated = self.seconds
        self._end_in_time()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self.tick()
        self._validation = self.seconds - self._updated
        self._end_in_time()

    def tick(self) -> None:
        """Counts the time since the last call; at the first, begins to count."""
        now = time.monotonic()
        self.seconds += 0.0 if self._last is None else now - self._last
        self._last = now

    def measure(self, validate: Callable[[], Any]) -> None:
        """Measures how long a validation takes."""
        self.tick()
        before = self.seconds
        validate()
        self.tick()
        self._validation = self.seconds - before

    def _end_in_time(self) -> None:
        # The averages are validated, too.
        if self.seconds + 2 * self._validation >= self.limit:
            self._has_ended = self.model.stop_training = True


class ProgressBar(keras.callbacks.Callback):
    """Shows on standard error how far a training is, and each validation in a line.

    On a terminal that is a bar for the whole run. In a file, in a notebook and where
    the environment variable `CI` is set, it is a plain line a minute.

    `train` shows one by itself. Use another in a `with` block, so that the terminal is
    restored whatever happens; it takes the place of that one.

    Args:
        steps: number of updates of the whole run; `None` for those of the run that it
            joins.
        limit: the `TimeLimit` of the run, if it has one: whichever of updates and time
            ends first is what is shown.
        console: where to write; by default standard error.

    Raises:
        ValueError: `steps` is not a positive integer.

    Example:

        with kav.training.ProgressBar(console=console) as bar:
            kav.training.train(model, tokenizer, dataset_at, "runs/first", config,
                               callbacks=[bar])
    """

    def __init__(
        self,
        steps: int | None = None,
        limit: TimeLimit | None = None,
        console: Console | None = None,
    ) -> None:
        super().__init__()
        self.steps = check_optional_integer("steps", steps)
        self._limit = limit
        # Time and number of the first update at its end: that one compiles.
        self._first: tuple[float, int] | None = None
        # Time and tokens at the end of the first update of the period.
        self._period: tuple[float, float] | None = None
        self._speed: list[str] = []
        self._bar = Bar(
            "{task.percentage:.0f} %, {task.description}",
            "compiling",
            console=console,
            writes=True,
        )

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def on_train_begin(self, logs: Logs = None) -> None:
        if self.steps is None:
            self.steps = self.params["epochs"] * self.params["steps"]
        # Not earlier: what is wrong with the settings is told without a bar.
        self._bar.start()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._period = None

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        now, values, step = time.monotonic(), logs or {}, self._step()
        done = step / (self.steps or 1)
        if self._limit is not None:
            done = max(done, self._limit.seconds / self._limit.limit)
        done, tokens = min(done, 1.0), values.get("tokens", 0.0)
        began, before = self._period = self._period or (now, tokens)
        if now > began:
            self._speed = [f"{(tokens - before) / (now - began):,.0f} tokens/s"]
        parts = [f"update {step:,}", f"loss {values.get('loss', 0.0):.2f}"]
        parts += self._speed
        start, first = self._first = self._first or (now, step)
        if step > first:
            left = (now - start) / (step - first) * ((self.steps or 0) - step)
            if self._limit is not None:
                left = min(left, self._limit.limit - self._limit.seconds)
            parts.append(f"{clock(max(left, 0.0))} left")
        text = ", ".join(parts)
        self._bar.show(done, text, f"{done:.0%}, {text}")

    def on_test_begin(self, logs: Logs = None) -> None:
        self._bar.describe("validating")

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        values: dict[str, Any] = logs or {}
        parts = [
            f"{name} {values[name]:.{decimals}f}"
            for name, decimals in SHOWN.items()
            if name in values
        ]
        self._bar.print(f"update {self._step():,}: {', '.join([*parts, *self._speed])}")

    def _step(self) -> int:
        return int(self.model.optimizer.iterations)


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

    def get_state(self) -> dict[str, Any]:
        size = self._path.stat().st_size if self._path.exists() else 0
        seconds = self._seconds + time.perf_counter() - self._started
        return {"bytes": size, "seconds": seconds}

    def set_state(self, state: Mapping[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.truncate(min(file.tell(), state["bytes"]))
        self._seconds = state["seconds"]

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._tick()
        self._tokens = self._progress.logs.get("tokens", 0.0)

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        step, logs = self._progress.step, logs or {}
        if step != self._progress.period_end and step % self._log_every:
            return
        seconds, tokens = self._tick(), logs.get("tokens", 0.0)
        speed = round((tokens - self._tokens) / max(seconds, 1e-9), 1)
        self._tokens = tokens
        rate = learning_rate(self.model.optimizer)
        values = {"learning_rate": rate, "tokens_per_second": speed, **logs}
        self.write("updates", values)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self._tick()
        self.write("period", logs or {})

    def write(self, event: str, values: Mapping[str, Any]) -> None:
        """Appends one line about the current step."""
        record = {"event": event, "step": self._progress.step}
        record["seconds"] = round(self._seconds, 3)
        for name, value in values.items():
            record[name] = float(value) if math.isfinite(value) else None
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def _tick(self) -> float:
        """Adds the time since the last call to the run's; returns that time."""
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


def read_log(log: Path) -> list[dict[str, Any]]:
    """The records of a run's log.

    Raises:
        ValueError: a line is no record.
    """
    # The last line may be incomplete; all others end in a newline.
    lines = log.read_text("utf-8").split("\n")[:-1]
    events = []
    for number, line in enumerate(lines, start=1):
        event = None
        with contextlib.suppress(ValueError, RecursionError):
            event = json.loads(line)
        if not _is_record(event):
            raise ValueError(
                f"Line {number} of {log} is no record of a log: remove it. "
                f"Received: {line!r:.80}"
            )
        events.append(event)
    return events


def _is_record(event: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a value is what `JsonLinesLogger` writes: numbers, or null, by name."""
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return False
    numbers = [value for name, value in event.items() if name != "event"]
    return type(event.get("step")) is int and all(
        value is None or type(value) in (int, float) for value in numbers
    )
