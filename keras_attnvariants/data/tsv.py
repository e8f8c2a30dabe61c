"""Reads parallel corpora in one file with two columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from keras_attnvariants.data.files import held_out_split
from keras_attnvariants.data.files import read_byte_lines

_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z]+)?")


def read_tsv(
    path: Path, languages: tuple[str, str], split: str
) -> Iterator[tuple[bytes, bytes] | None]:
    """Yields the pairs of one split, and `None` for lines without exactly two columns.

    A header line of the two language codes gives the order of the columns; without
    it the columns are source and target. A hash of the line decides its split, so that
    equal lines are always in the same one.

    Raises:
        ValueError: If the header names other languages.
    """
    header = _header(path)
    if header is not None and set(header) != set(languages):
        raise ValueError(
            f"The header of {path} names the languages {' and '.join(header)}. "
            f"Received: {languages[0]!r} to {languages[1]!r}"
        )
    reverse = header == languages[::-1]
    for line in islice(read_byte_lines(path), int(header is not None), None):
        # Hashing must not fail on broken bytes; equal bytes still agree.
        if held_out_split(line.decode("utf-8", "replace")) != split:
            continue
        cells = line.split(b"\t")
        if len(cells) == 2:
            yield (cells[1], cells[0]) if reverse else (cells[0], cells[1])
        else:
            yield None


def _header(path: Path) -> tuple[str, str] | None:
    """The language codes in the first line, if these are all it holds."""
    first = next(read_byte_lines(path), b"").decode("utf-8", "replace").split("\t")
    if len(first) == 2 and all(_LANGUAGE_CODE.fullmatch(cell) for cell in first):
        return first[0], first[1]
    return None
