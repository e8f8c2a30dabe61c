"""Sentences to translate: arguments, a file, a part of a file, or a pipe."""

import os
import re
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from typing import NamedTuple

from keras_attnvariants.cli.texts import FIRST_CHUNK
from keras_attnvariants.utils.lines import seek_line
from keras_attnvariants.utils.lines import text_lines

# Parts of a file that anyone could want.
MOST_SHARDS = 1_000_000


@dataclass(frozen=True)
class Shard:
    """One of several parts of a file, of about as many bytes each.

    A line belongs to the part that its first byte lies in. The parts are contiguous:
    one after another, they are the file.

    Attributes:
        number: of the part, from 1.
        count: of the parts.
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


class CountedStream:
    """The lines of a stream that begin before a position, and how much was read.

    Attributes:
        done: bytes that were read so far.
    """

    def __init__(self, file: BinaryIO, limit: int | None = None) -> None:
        self.done = 0
        self._file = file
        self._limit = limit

    def readline(self, size: int, /) -> bytes:
        """The next line, or nothing if it begins at the limit or beyond."""
        if self._limit is not None and self.done >= self._limit:
            return b""
        line = self._file.readline(size)
        self.done += len(line)
        return line


class Source(NamedTuple):
    """What to translate.

    Attributes:
        texts: one sentence each; read as they are needed.
        first: how many are read before the first translation.
        stream: that they come from; `None` for arguments.
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
    """
    if texts:
        yield Source(texts)
    elif path:
        with path.open("rb") as file:
            yield lines_of_file(file, shard)
    else:
        stream = CountedStream(sys.stdin.buffer)
        # Who types a sentence waits for its translation.
        first = 1 if sys.stdin.isatty() else FIRST_CHUNK
        yield Source(text_lines(stream), first, stream)


def lines_of_file(file: BinaryIO, shard: Shard | None) -> Source:
    """The lines of a file, or of a part of it."""
    if shard is None:
        stream = CountedStream(file)
        # A pipe has a name too, such as that of `<(zcat file)` in a shell.
        size = os.fstat(file.fileno()).st_size if file.seekable() else None
        return Source(text_lines(stream), stream=stream, size=size)
    start, stop = shard.bounds(os.fstat(file.fileno()).st_size)
    if start:
        seek_line(file, start)
        start = file.tell()
    size = max(stop - start, 0)
    stream = CountedStream(file, size)
    lines = text_lines(stream, is_start=start == 0)
    return Source(lines, stream=stream, size=size)
