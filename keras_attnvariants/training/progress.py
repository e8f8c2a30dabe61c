"""A progress bar for training."""

from types import TracebackType
from typing import Any

import keras
from rich.console import Console
from rich.progress import BarColumn
from rich.progress import Progress
from rich.progress import TextColumn
from rich.progress import TimeRemainingColumn

from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.limit import TimeLimit
from keras_attnvariants.utils.checks import check_integer

# The metrics that a line about a validation has room for.
SHOWN = ("loss", "val_loss", "val_bleu")


class ProgressBar(keras.callbacks.Callback):
    """Shows on standard error how far a training is, and each validation in a line.

    Use it in a `with` block, so that the terminal is restored whatever happens, and
    with `verbose=0`, which silences the bar of Keras.

    Args:
        steps: number of updates of the whole run.
        limit: the `TimeLimit` of the run, if it has one: the bar then shows whichever
            of updates and time is further on.
        console: where to write; by default standard error.

    Raises:
        ValueError: `steps` is not a positive integer.

    Example:

        with kav.training.ProgressBar(config.steps) as bar:
            kav.training.train(model, tokenizer, dataset_at, "runs/first", config,
                               callbacks=[bar], verbose=0)
    """

    def __init__(
        self,
        steps: int,
        limit: TimeLimit | None = None,
        console: Console | None = None,
    ) -> None:
        super().__init__()
        self._steps = check_integer("steps", steps)
        self._limit = limit
        console = console or Console(stderr=True, highlight=False)
        self._bar = Progress(
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            transient=True,
            # A file gets the lines about validations alone.
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("compiling", total=1.0)

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()

    @property
    def completed(self) -> float:
        """How far the run is, between 0 and 1."""
        return self._bar.tasks[0].completed

    def on_train_begin(self, logs: Logs = None) -> None:
        # Not earlier: what is wrong with the settings is told without a bar.
        self._bar.start()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        done = self._step() / self._steps
        if self._limit is not None:
            done = max(done, self._limit.seconds / self._limit.limit)
        loss = (logs or {}).get("loss", 0.0)
        self._bar.update(
            self._task,
            completed=min(done, 1.0),
            description=f"update {self._step():,}, loss {loss:.2f}",
        )

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        values: dict[str, Any] = logs or {}
        scores = [f"{name} {values[name]:.3f}" for name in SHOWN if name in values]
        self._bar.console.print(f"update {self._step():,}: {', '.join(scores)}")

    def _step(self) -> int:
        return int(self.model.optimizer.iterations)
