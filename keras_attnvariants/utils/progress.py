"""Progress: a bar on a terminal, plain lines everywhere else."""

import os
import sys
import time

from rich.console import Console
from rich.progress import BarColumn
from rich.progress import Progress
from rich.progress import TextColumn

# The text beside a bar: the share that is done, and the activity.
PERCENT = "{task.percentage:.0f}%, {task.description}"
# Seconds between two plain lines.
PLAIN_EVERY = 60.0


def progress_console() -> Console:
    """Standard error, with control codes only if a person watches a terminal."""
    is_watched = sys.stderr.isatty() and not os.environ.get("CI")
    return Console(
        stderr=True,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=None if is_watched else False,
    )


class Bar:
    """Shows progress: a bar on a terminal, a plain line per minute elsewhere.

    The bar disappears at the end. The remaining time is estimated from the work since
    the first `show`: before that, programs are compiled.

    Args:
        text: the text beside the bar, in terms of `rich.progress.Task`.
        description: the activity at first.
        total: the amount of work; `None` if it is not known.
        console: where to write; by default standard error.
        at_once: whether the first plain line comes with the first `show`, not after a
            minute.
        bar_width: number of columns; by default what the text leaves.
        writes: whether the program writes to standard output meanwhile. On a terminal,
            this output goes above the bar; output to a file does not.
    """

    def __init__(
        self,
        text: str,
        description: str,
        total: float | None = 1.0,
        console: Console | None = None,
        at_once: bool = True,
        bar_width: int | None = None,
        writes: bool = False,
    ) -> None:
        self._console = console or progress_console()
        self._text = text
        # Time and amount of work at the first `show`.
        self._first: tuple[float, float] | None = None
        self._last_line = -PLAIN_EVERY if at_once else time.monotonic()
        self._bar = Progress(
            BarColumn(bar_width=bar_width),
            TextColumn(text),
            console=self._console,
            expand=True,
            transient=True,
            disable=not self._console.is_interactive,
            redirect_stdout=writes and sys.stdout.isatty(),
        )
        self._task = self._bar.add_task(description, total=total)
        self.start, self.stop = self._bar.start, self._bar.stop

    def describe(self, description: str) -> None:
        """Shows the activity on a terminal."""
        self._bar.update(self._task, description=description)

    def show(self, completed: float, description: str, found: float = 0.0) -> None:
        """Shows the amount of work done, and the remaining time.

        Args:
            completed: the amount.
            description: the activity.
            found: part of the amount that was done before, but is only reported now.
        """
        task, now = self._bar.tasks[0], time.monotonic()
        start, first = self._first or (now, completed - found)
        self._first = start, first + found
        if task.total is not None and completed > first + found:
            pace = (now - start) / (completed - first - found)
            left = max(task.total - completed, 0.0) * pace
            description += f", {clock(left)} left"
        self._bar.update(self._task, completed=completed, description=description)
        is_due = now - self._last_line >= PLAIN_EVERY
        if is_due and not self._console.is_interactive:
            self.print(self._text.format(task=task))

    def print(self, line: str) -> None:
        """Prints a line that stays."""
        self._last_line = time.monotonic()
        self._console.print(line, soft_wrap=True)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, such as `1:02:03`; without hours, `2:03`."""
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"
