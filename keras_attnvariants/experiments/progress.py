"""How far a comparison is: one bar on a terminal, plain lines elsewhere."""

import time

from rich.console import Console

from keras_attnvariants.experiments import workers
from keras_attnvariants.utils.progress import Bar
from keras_attnvariants.utils.progress import clock


class JobsProgress(workers.Progress):
    """Shows on standard error how many jobs are done, and what those at work do.

    Args:
        what: the jobs together, such as `"runs"`.
        total: number of jobs.
        done: how many of them had ended before.
        console: where to write; by default standard error.
    """

    def __init__(
        self, what: str, total: int, done: int = 0, console: Console | None = None
    ) -> None:
        self._what = what
        self._total = max(total, 1)
        self._ended = done
        self._shares: dict[str, float] = {}
        self._first: dict[str, float] = {}
        self._texts: dict[str, str] = {}
        self._start = time.monotonic()
        self._worked = 0.0  # jobs, in parts, since the start
        self._bar = Bar(
            "{task.percentage:.0f} %, {task.description}",
            "starting",
            console=console,
            bar_width=20,
            writes=True,
        )

    def __enter__(self) -> "JobsProgress":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    @property
    def completed(self) -> float:
        """How much is done, from 0 to 1."""
        return min((self._ended + sum(self._shares.values())) / self._total, 1.0)

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the end; `None` until they can be estimated."""
        parts = self._worked + sum(
            share - self._first[name] for name, share in self._shares.items()
        )
        if parts <= 0.0:
            return None
        left = self._total * (1 - self.completed)
        return left * (time.monotonic() - self._start) / parts

    def update(self, name: str, done: float, text: str) -> None:
        self._first.setdefault(name, done)
        self._shares[name], self._texts[name] = done, text
        self._show()

    def ended(self, name: str, error: str | None) -> None:
        self._worked += 1.0 - self._first.pop(name, 0.0)
        self._shares.pop(name, None)
        self._texts.pop(name, None)
        self._ended += 1
        self._bar.print(f"{name}: {'done' if error is None else error}")
        self._show()

    def _show(self) -> None:
        parts = [f"{self._ended:,} of {self._total:,} {self._what}"]
        parts += [f"{name}: {text}" for name, text in self._texts.items()]
        if (left := self.seconds_left) is not None:
            parts.append(f"{clock(left)} left")
        text = "; ".join(parts)
        self._bar.show(self.completed, text, f"{self.completed:.0%}, {text}")
