"""Reads texts to translate from arguments, a file or a pipe, in chunks.

Standard error shows the progress.
"""

import os
import sys
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO
from typing import NamedTuple

from keras_attnvariants.utils.lines import text_lines
from keras_attnvariants.utils.progress import Bar

# Number of sentences in the first chunk, and in the largest: larger chunks fill
# batches of equal length.
FIRST_CHUNK, LARGEST_CHUNK = 32, 1024


class Source(NamedTuple):
    """Texts to translate, and the stream that they come from.

    Attributes:
        texts: one sentence each, read when needed.
        first: number of texts to read before the first translation.
        stream: their source; `None` for arguments.
        size: bytes of all texts; `None` if unknown.
    """

    texts: Iterable[str]
    first: int = FIRST_CHUNK
    stream: IO[bytes] | None = None
    size: int | None = None

    @property
    def done(self) -> int:
        """Bytes that were read, if the size is known."""
        return 0 if self.stream is None or self.size is None else self.stream.tell()


@contextmanager
def sentences(texts: list[str] | None, path: Path | None) -> Iterator[Source]:
    """Context with the arguments, or the lines of a file or of standard input.

    Args:
        texts: the arguments.
        path: the file to read without arguments; `None` for standard input.

    Raises:
        OSError: the file cannot be read, or standard input is closed.
    """
    if texts:
        yield Source(texts)
    elif path:
        with path.open("rb") as file:
            # A pipe has a name too, for instance from `<(zcat file)` in a shell.
            size = os.fstat(file.fileno()).st_size if file.seekable() else None
            yield Source(text_lines(file), stream=file, size=size)
    elif sys.__stdin__ is None:
        raise OSError("Standard input is closed: give sentences or --input.")
    else:
        # A user who types a sentence waits for its translation.
        first = 1 if sys.stdin.isatty() else FIRST_CHUNK
        yield Source(text_lines(sys.stdin.buffer), first, sys.stdin.buffer)


def chunks(
    texts: Iterable[str],
    first: int = FIRST_CHUNK,
    largest: int = LARGEST_CHUNK,
    done: int = 0,
) -> Iterator[list[str]]:
    """Lists of texts, in order, each twice as long as the one before.

    Nothing is read ahead: memory holds one list.

    Args:
        texts: texts, read when needed.
        first: length of the first list, at most `largest`.
        largest: length of the longest list.
        done: number of texts before these. Lists end as if those were included, so
            that an interruption does not change which texts are translated together.
    """
    size = end = min(first, largest)
    iterator = iter(texts)
    while end <= done:
        size = min(2 * size, largest)
        end += size
    while chunk := list(islice(iterator, end - done)):
        yield chunk
        done += len(chunk)
        size = min(2 * size, largest)
        end += size


class LineProgress:
    """Shows the progress and speed of a translation on standard error.

    Args:
        size: size of the text in a unit such as bytes; `None` if unknown.
        description: shown before the numbers.
    """

    def __init__(self, size: int | None, description: str = "") -> None:
        # Without a total, the bar only shows activity.
        self._total = None if size is None else max(size, 1)
        self._description = f"{description}: " if description else ""
        self._start: tuple[float, int] | None = None
        starting = f"{self._description}starting"
        self._bar = Bar("{task.description}", starting, self._total, at_once=False)

    def __enter__(self) -> "LineProgress":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def update(self, lines: int, done: int) -> None:
        """Shows that more lines are done.

        Args:
            lines: number of these lines.
            done: the finished part of the size, in its unit.
        """
        now = time.monotonic()
        # The time before the first lines includes compilation.
        start, first = self._start = self._start or (now, lines)
        parts = [] if self._total is None else [f"{done / self._total:.0%}"]
        parts.append(f"{lines:,} lines")
        if now > start and lines > first:
            parts.append(f"{(lines - first) / (now - start):,.1f} lines/s")
        self._bar.show(done, self._description + ", ".join(parts))


def with_progress(
    translate: Callable[[list[str]], list[str]],
    description: str,
    largest: int = LARGEST_CHUNK,
) -> Callable[[list[str]], list[str]]:
    """A function with a progress bar on standard error.

    Args:
        translate: the function.
        description: shown before the numbers.
        largest: largest number of texts to pass at once.
    """

    def shown(texts: list[str]) -> list[str]:
        translations: list[str] = []
        with LineProgress(len(texts), description) as progress:
            for chunk in chunks(texts, largest=largest):
                translations += translate(chunk)
                progress.update(len(translations), len(translations))
        return translations

    return shown
