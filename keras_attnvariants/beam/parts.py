"""Parts of large text files, and whole files from what became of the parts."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from keras_attnvariants.utils.lines import lines_between

# Bytes of text that a worker takes at a time.
PART_BYTES = 1 << 24


class Part(NamedTuple):
    """The lines of a file that begin in a range of bytes.

    Attributes:
        file: the file, on a disk that all workers see.
        output: what is written of it, beside others of the same file.
        start: first byte of the range.
        stop: first byte behind it.
    """

    file: str
    output: str
    start: int
    stop: int

    def lines(self, drop_mark: bool) -> Iterator[bytes]:
        """The lines, without a byte order mark of the file if that is to be dropped."""
        with open(self.file, "rb") as file:
            is_start = drop_mark and self.start == 0
            yield from lines_between(file, self.start, self.stop, is_start)


def parts_of(file: Path, output: Path) -> list[Part]:
    """The parts of a file; their outputs have its name and a number at the end."""
    size = file.stat().st_size
    return [
        Part(str(file), f"{output}-{number:06}", start, min(start + PART_BYTES, size))
        for number, start in enumerate(range(0, size, PART_BYTES))
    ]


def join(files: Iterable[Path], whole: Path) -> None:
    """Writes files one after another, and removes them."""
    with whole.open("wb") as output:
        for file in files:
            with file.open("rb") as part:
                shutil.copyfileobj(part, output, 1 << 22)
            file.unlink()
