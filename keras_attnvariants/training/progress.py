"""The progress of a training: a bar on a terminal, and the log."""

import dataclasses
import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
from pydantic import BaseModel
from rich.console import Console

from keras_attnvariants.data.tasks import monitors
from keras_attnvariants.training.callbacks import DataclassCallback
from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.training.optimizers import learning_rate
from keras_attnvariants.training.time_limits import TimeLimit
from keras_attnvariants.training.time_limits import share_done
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.files import LARGEST_JSON
from keras_attnvariants.utils.files import open_plain
from keras_attnvariants.utils.files import read_file
from keras_attnvariants.utils.progress import PERCENT
from keras_attnvariants.utils.progress import Bar

# The metrics that a line about a validation has room for, and their decimals.
SHOWN = {"loss": 3, "val_loss": 3} | {m: 2 for m in monitors() if m != "val_loss"}


class ProgressBar(keras.callbacks.Callback):
    """Shows the progress of a training on standard error, with a line per validation.

    On a terminal, this is a bar for the whole run. In a file, in a notebook and where
    the environment variable `CI` is set, it is a plain line per minute.

    `train` shows one by default. Pass another one to replace it, in a `with` block so
    that the terminal is always restored.

    Args:
        steps: number of updates of the whole run; `None` for those of the run that it
            joins.
        limit: the `TimeLimit` of the run, if it has one: the bar shows updates or time,
            whichever ends first.
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
        # Time and tokens at the end of the first update of the period.
        self._period: tuple[float, float] | None = None
        self._speed: list[str] = []
        self._bar = Bar(PERCENT, "compiling", console=console, writes=True)

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def on_train_begin(self, logs: Logs = None) -> None:
        if self.steps is None:
            self.steps = self.params["epochs"] * self.params["steps"]
        # Not earlier, so that errors in the settings are shown without a bar.
        self._bar.start()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._period = None

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        now, values, step = time.monotonic(), logs or {}, self._step()
        done = share_done(step, self.steps or 1, self._limit)
        tokens = values.get("tokens", 0.0)
        began, before = self._period = self._period or (now, tokens)
        if now > began:
            self._speed = [f"{(tokens - before) / (now - began):,.0f} tokens/s"]
        parts = [f"update {step:,}", f"loss {values.get('loss', 0.0):.2f}"]
        self._bar.show(done, ", ".join([*parts, *self._speed]))

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


@dataclasses.dataclass(eq=False)
class JsonLinesLogger(DataclassCallback, StatefulCallback):
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

    path: Path
    progress: Progress
    log_every: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._seconds = 0.0  # up to the last line
        self._started = time.perf_counter()
        self._tokens = 0.0  # at the last line, of this period

    def get_state(self) -> dict[str, Any]:
        size = self.path.stat().st_size if self.path.exists() else 0
        seconds = self._seconds + time.perf_counter() - self._started
        return {"bytes": size, "seconds": seconds}

    def set_state(self, state: Mapping[str, Any]) -> None:
        with open(self.path, "ab", opener=open_plain) as file:
            file.truncate(min(file.tell(), state["bytes"]))
        self._seconds = float(state["seconds"])

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._tick()
        self._tokens = self.progress.logs.get("tokens", 0.0)

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        step, logs = self.progress.step, logs or {}
        if step != self.progress.period_end and step % self.log_every:
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
        record = {"event": event, "step": self.progress.step}
        record["seconds"] = round(self._seconds, 3)
        for name, value in values.items():
            record[name] = float(value) if math.isfinite(value) else None
        with open(self.path, "a", encoding="utf-8", opener=open_plain) as file:
            file.write(json.dumps(record) + "\n")

    def _tick(self) -> float:
        """Adds the time since the last call to the run's; returns that time."""
        now = time.perf_counter()
        elapsed, self._started = now - self._started, now
        self._seconds += elapsed
        return elapsed


class Record(BaseModel, strict=True, extra="allow"):
    """A line of a log: besides event and step, numbers or null by name."""

    __pydantic_extra__: dict[str, float | None]
    event: str
    step: int


def read_log(log: Path) -> list[dict[str, Any]]:
    """The records of a run's log.

    Raises:
        ValueError: a line is not a record.
        DamagedFolderError: it is larger than the log of any run.
    """
    # The last line may be incomplete; all others end in a newline.
    lines = read_file(log, largest=LARGEST_JSON).decode("utf-8").split("\n")[:-1]
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(Record.model_validate_json(line).model_dump())
        except ValueError as error:
            raise ValueError(
                f"Line {number} of {log} is not a record of a log: remove it. "
                f"Received: {line!r:.80}"
            ) from error
    return events
