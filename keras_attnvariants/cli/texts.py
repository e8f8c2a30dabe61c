"""Texts to translate: read from arguments, a file, a part of one or a pipe, in chunks.

How far they are is shown on standard error.
"""

import os
import re
import sys
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO
from typing import NamedTuple

from rich.console import Console

from keras_attnvariants.utils.lines import CountedStream
from keras_attnvariants.utils.lines import seek_line
from keras_attnvariants.utils.lines import text_lines
from keras_attnvariants.utils.progress import Bar
from keras_attnvariants.utils.progress import clock

# Sentences that are translated together. The first come early; later ones fill
# batches of equal length.
FIRST_CHUNK, LARGEST_CHUNK = 32, 1024
# Parts of a file that anyone could want.
MOST_SHARDS = 1_000_000


@dataclass(frozen=True)
class Shard:
    """One of several parts of a file, of about as many bytes each.

    A line belongs to the part that its first byte lies in. The parts are contiguous:
    one after another, they are the file.

    Attributes:
        number: number of the part, from 1.
        count: number of parts.
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """The shard that a text such as `3/8` names.

        Raises:
            ValueError: it names none.
        """
        found = re.fullmatch(r"(\d{1,7})/(\d{1,7})", text, re.ASCII)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count <= MOST_SHARDS:
            raise ValueError(
                "--shard must be a number, a slash and the number of shards, from 1/8 "
                f"to 8/8 for eight. Received: {text}"
            )
        return cls(number, count)

    def bounds(self, size: int) -> tuple[int, int]:
        """The first byte of this part of a file of so many bytes, and of the next."""
        return size * (self.number - 1) // self.count, size * self.number // self.count


class Source(NamedTuple):
    """Texts to translate, and the stream that they come from.

    Attributes:
        texts: one sentence each; read as they are needed.
        first: how many are read before the first translation.
        stream: where they come from; `None` for arguments.
        size: bytes of all texts; `None` if it is not known.
    """

    texts: Iterable[str]
    first: int = FIRST_CHUNK
    stream: CountedStream | None = None
    size: int | None = None


@contextmanager
def sentences(
    texts: list[str] | None, path: Path | None, shard: Shard | None
) -> Iterator[Source]:
    """Context with the arguments, or the lines of a file or of standard input.

    Args:
        texts: the arguments.
        path: the file, if there are none; else it is standard input.
        shard: the part of the file; `None` for all of it.

    Raises:
        OSError: the file cannot be read, or standard input is closed.
    """
    if texts:
        yield Source(texts)
    elif path:
        with path.open("rb") as file:
            yield lines_of_file(file, shard)
    elif sys.__stdin__ is None:
        raise OSError("Standard input is closed: give sentences or --input.")
    else:
        stream = CountedStream(sys.stdin.buffer)
        # Who types a sentence waits for its translation.
        first = 1 if sys.stdin.isatty() else FIRST_CHUNK
        yield Source(text_lines(stream), first, stream)


def lines_of_file(file: BinaryIO, shard: Shard | None) -> Source:
    """The lines of a file, or of a part of it."""
    # A pipe has a name too, such as that of `<(zcat file)` in a shell.
    size = os.fstat(file.fileno()).st_size if file.seekable() else None
    start = 0
    if shard is not None and size is not None:
        start, stop = shard.bounds(size)
        seek_line(file, start)
        start, size = file.tell(), max(stop - file.tell(), 0)
    stream = CountedStream(file, None if shard is None else size)
    return Source(text_lines(stream, start == 0), stream=stream, size=size)


def chunks(
    texts: Iterable[str],
    first: int = FIRST_CHUNK,
    largest: int = LARGEST_CHUNK,
    done: int = 0,
) -> Iterator[list[str]]:
    """Lists of texts, in order, each twice as long as the one before.

    Nothing is read ahead: memory holds one list.

    Args:
        texts: read as they are needed.
        first: length of the first list.
        largest: length of the longest.
        done: texts before these. Lists end where they would if those came first: what
            is translated together does not depend on an interruption.
    """
    iterator, size, end = iter(texts), first, first
    while end <= done:
        size = min(2 * size, largest)
        end += size
    while chunk := list(islice(iterator, end - done)):
        yield chunk
        done += len(chunk)
        size = min(2 * size, largest)
        end += size


class LineProgress:
    """Shows on standard error how much of a text is done, and how fast it goes.

    Args:
        size: size of the text in a unit such as bytes; `None` if it is not known.
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
        """Shows that more lines are done.

        Args:
            lines: number of these lines.
            done: the part of the size that is done, in its unit.
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


def with_progress(
    translate: Callable[[list[str]], list[str]], description: str
) -> Callable[[list[str]], list[str]]:
    """The same function, showing a progress bar on standard error."""

    def shown(texts: list[str]) -> list[str]:
        translations: list[str] = []
        with LineProgress(len(texts), description) as progress:
            for chunk in chunks(texts):
                translations += translate(chunk)
                progress.update(len(translations), len(translations))
        return translations

    return shown
