"""A progress bar for training that goes by the clock."""

from typing import Any

from limit import TimeLimit
from rich.progress import BarColumn
from rich.progress import Progress
from rich.progress import TextColumn
from rich.progress import TimeRemainingColumn


class TimeLimitBar(TimeLimit):
    """A `TimeLimit` that shows how much of it has gone, in a `with` block.

    Args:
        minutes: of training.
        steps: updates after which training ends in any case.
    """

    def __init__(self, minutes: float, steps: int) -> None:
        super().__init__(minutes)
        self.steps = steps
        self.bar = Progress(
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        self.task = self.bar.add_task("compiling", total=1.0)

    def __enter__(self) -> "TimeLimitBar":
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._tick()
        step = int(self.model.optimizer.iterations)
        loss = (logs or {}).get("loss", 0.0)
        self.bar.update(
            self.task,
            completed=max(self.seconds / self.limit, step / self.steps),
            description=f"update {step:,}, loss {loss:.2f}",
        )
