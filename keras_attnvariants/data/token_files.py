"""Rows of integers on disk, such as the token ids of the lines of a text."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from keras_attnvariants.data.bucketing import blocks


class TokenFile:
    """Rows of different lengths, memory-mapped: `<path>.ids` and `<path>.offsets`.

    Args:
        path: Both files, without their endings.
        width: Integers in an entry of a row.

    Attributes:
        ids: int32 or uint16 `[entries]`, or `[entries, width]`: all rows one after
            another.
        offsets: int64 `[rows + 1]`, where each row begins.
    """

    def __init__(self, path: Path, width: int = 1) -> None:
        self._path = path
        self.offsets = np.memmap(path.with_suffix(".offsets"), np.int64, mode="r")
        ids = path.with_suffix(".ids")
        self.ids: np.ndarray = np.zeros(0, np.int32)
        # An empty file cannot be memory-mapped.
        if size := ids.stat().st_size:
            is_short = size == 2 * width * self.offsets[-1]
            self.ids = np.memmap(ids, np.uint16 if is_short else np.int32, mode="r")
        if width > 1:
            self.ids = self.ids.reshape(-1, width)

    @property
    def lengths(self) -> np.ndarray:
        """Entries of each row, `[rows]`, with 16 bits unless a row has too many."""
        lengths = np.empty(len(self.offsets) - 1, np.uint16)
        path = self._path.with_suffix(".offsets")
        for block in blocks(len(lengths)):
            count = block.stop - block.start + 1
            # Read, because mapped pages count as memory of the process.
            offsets = np.fromfile(path, np.int64, count, offset=8 * block.start)
            found = np.diff(offsets)
            # Callers add 1, for EOS.
            if found.max() >= np.iinfo(lengths.dtype).max:
                lengths = lengths.astype(np.int32)
            lengths[block] = found
        return lengths

    def __iter__(self) -> Iterator[np.ndarray]:
        """The entries of each row."""
        ids = np.asarray(self.ids)
        for start, end in pairwise(np.asarray(self.offsets)):
            yield ids[start:end]

    def entries(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the entries of some rows, one after another.

        Returns:
            For each entry, the number of its row among those given, its place in the
            row, and its value.
        """
        # Plain arrays: indexing a memory map is slower.
        offsets, ids = np.asarray(self.offsets), np.asarray(self.ids)
        starts = offsets[rows]
        lengths = offsets[rows + 1] - starts
        numbers = np.repeat(np.arange(len(rows)), lengths)
        places = np.arange(len(numbers)) - (np.cumsum(lengths) - lengths)[numbers]
        return numbers, places, ids[starts[numbers] + places]


def write_rows(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
    path: Path,
    dtype: npt.DTypeLike = np.int32,
) -> None:
    """Writes the files that `TokenFile` reads.

    Args:
        blocks: The entries of some rows, and the length of each of these rows.
        path: Both files, without their endings.
        dtype: int32 or uint16.
    """
    end = 0
    with (
        open(path.with_suffix(".ids"), "wb") as ids,
        open(path.with_suffix(".offsets"), "wb") as offsets,
    ):
        np.zeros(1, np.int64).tofile(offsets)
        for entries, lengths in blocks:
            entries.astype(dtype).tofile(ids)
            ends = end + np.cumsum(lengths, dtype=np.int64)
            ends.tofile(offsets)
            end = int(ends[-1])
