"""How progress is shown: a bar on a terminal, plain lines everywhere else."""

import os
import sys

from rich.console import Console
from rich.progress import BarColumn
from rich.progress import Progress
from rich.progress import TextColumn

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


def transient_bar(
    console: Console, text: str, bar_width: int | None = None, writes: bool = False
) -> Progress:
    """A bar that is gone when it ends, and is not drawn where nobody watches.

    Args:
        console: where to draw it.
        text: what stands beside it, in terms of `rich.progress.Task`.
        bar_width: columns; by default what the text leaves.
        writes: whether the program writes to standard output meanwhile. On a terminal,
            that goes above the bar; what goes into a file is not for the terminal.
    """
    return Progress(
        BarColumn(bar_width=bar_width),
        TextColumn(text),
        console=console,
        expand=True,
        transient=True,
        disable=not console.is_interactive,
        redirect_stdout=writes and sys.stdout.isatty(),
    )


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, such as `1:02:03`; without hours, `2:03`."""
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"
