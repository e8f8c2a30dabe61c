"""What a training shows: a bar on a terminal, plain lines everywhere else."""

import contextlib
import time
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import keras
from rich.console import Console

from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.limit import TimeLimit
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.progress import Bar
from keras_attnvariants.utils.progress import clock

# The metrics that a line about a validation has room for, and their decimals.
SHOWN = {"loss": 3, "val_loss": 3, "val_bleu": 2}


class Pace:
    """How fast a training is, from the end of its first update on: that one compiles.

    Attributes:
        tokens_per_second: of the current period; `None` until it is known.
        seconds_per_update: with validations; `None` until it is known.
    """

    def __init__(self) -> None:
        self.tokens_per_second: float | None = None
        self.seconds_per_update: float | None = None
        self._first: tuple[float, int] | None = None
        self._period: tuple[float, float] | None = None

    def start_period(self) -> None:
        """A period begins; what lies between two periods takes no tokens."""
        self._period = None

    def update(self, step: int, tokens: float) -> None:
        """Another update is done.

        Args:
            step: updates of the run so far.
            tokens: of the current period so far.
        """
        now = time.monotonic()
        start, first = self._first = self._first or (now, step)
        if step > first:
            self.seconds_per_update = (now - start) / (step - first)
        start, before = self._period = self._period or (now, tokens)
        if now > start:
            self.tokens_per_second = (tokens - before) / (now - start)


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
        self._pace = Pace()
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

    @property
    def completed(self) -> float:
        """How far the run is, between 0 and 1."""
        return self._bar.completed

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the end of the run; `None` until they can be estimated."""
        pace = self._pace.seconds_per_update
        if pace is None:
            return None
        left = pace * ((self.steps or 0) - self._step())
        if self._limit is not None:
            left = min(left, self._limit.limit - self._limit.seconds)
        return max(left, 0.0)

    def on_train_begin(self, logs: Logs = None) -> None:
        if self.steps is None:
            self.steps = self.params["epochs"] * self.params["steps"]
        # Not earlier: what is wrong with the settings is told without a bar.
        self._bar.start()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._pace.start_period()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        values = logs or {}
        step = self._step()
        self._pace.update(step, values.get("tokens", 0.0))
        done = step / (self.steps or 1)
        if self._limit is not None:
            done = max(done, self._limit.seconds / self._limit.limit)
        parts = [f"update {step:,}", f"loss {values.get('loss', 0.0):.2f}"]
        parts += self._speed()
        if (left := self.seconds_left) is not None:
            parts.append(f"{clock(left)} left")
        done, text = min(done, 1.0), ", ".join(parts)
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
        self._bar.print(
            f"update {self._step():,}: {', '.join([*parts, *self._speed()])}"
        )

    def _speed(self) -> list[str]:
        """Target tokens per second, once they are known."""
        speed = self._pace.tokens_per_second
        return [] if speed is None else [f"{speed:,.0f} tokens/s"]

    def _step(self) -> int:
        return int(self.model.optimizer.iterations)


@contextlib.contextmanager
def with_progress_bar(
    callbacks: Sequence[keras.callbacks.Callback], steps: int
) -> Iterator[list[keras.callbacks.Callback]]:
    """Context with the callbacks of a run and, if none is among them, a progress bar.

    Args:
        callbacks: of the run; one of them may be its `TimeLimit`.
        steps: number of updates of the whole run.
    """
    if any(isinstance(callback, ProgressBar) for callback in callbacks):
        yield list(callbacks)
        return
    limits = (callback for callback in callbacks if isinstance(callback, TimeLimit))
    with ProgressBar(steps, next(limits, None)) as bar:
        yield [bar, *callbacks]  # its line about a validation comes before samples
