"""How progress is shown: a bar on a terminal, plain lines everywhere else."""

import os
import sys

from rich.console import Console

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


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, such as `1:02:03`; without hours, `2:03`."""
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"
