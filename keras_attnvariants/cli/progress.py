"""How many lines are done: a bar on a terminal, a plain line a minute elsewhere."""

import time

from rich.console import Console

from keras_attnvariants.utils.progress import Bar
from keras_attnvariants.utils.progress import clock


class LineProgress:
    """Shows on standard error how much of a text is done, and how fast it goes.

    Args:
        size: of the text, in a unit such as bytes; `None` if it is not known.
        description: shown before the numbers.
        console: where to write; by default standard error.
    """

    def __init__(
        self,
        size: int | None,
        description: str = "",
        console: Console | None = None,
    ) -> None:
        self._size = size
        self._description = f"{description}: " if description else ""
        self._start: tuple[float, int, int] | None = None
        # Without a total the bar only shows that something is going on.
        total = None if size is None else max(size, 1)
        starting = f"{self._description}starting"
        self._bar = Bar("{task.description}", starting, total, console, at_once=False)

    def __enter__(self) -> "LineProgress":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def update(self, lines: int, done: int) -> None:
        """More lines are done.

        Args:
            lines: that are done.
            done: of the size.
        """
        now = time.monotonic()
        # Before the first lines were done, programs were compiled.
        start, first, before = self._start = self._start or (now, lines, done)
        parts = [] if self._size is None else [f"{done / max(self._size, 1):.0%}"]
        parts.append(f"{lines:,} lines")
        if now > start and lines > first:
            parts.append(f"{(lines - first) / (now - start):,.1f} lines/s")
            if self._size is not None and done > before:
                left = (self._size - done) * (now - start) / (done - before)
                parts.append(f"{clock(left)} left")
        text = self._description + ", ".join(parts)
        self._bar.show(done, text, text)
