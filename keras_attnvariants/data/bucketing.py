"""Chooses a few padded lengths that waste few positions of a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

# A rectangle of the histogram: its counts, and the row and column that it begins at.
_Part = tuple[np.ndarray, int, int]

# Entries of a block, whose intermediate arrays fit into a processor's cache.
BLOCK = 1 << 18

_MOVES = tuple(move for move in product((-1, 0, 1), repeat=2) if any(move))


def choose_lengths(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    max_length: int,
    max_shapes: int,
    multiple: int,
) -> list[tuple[int, int]]:
    """Chooses padded lengths by dividing the plane of lengths, then adjusts them.

    All pairs begin in one box, padded to its longest source and target. While there are
    fewer than `max_shapes` boxes, one is divided in two along either axis, such that
    this saves the most padded positions. Then lengths move by one step as long as that
    saves positions; each pair takes the cheapest lengths that hold it.

    Args:
        source_lengths: Integers `[N]`, in positions.
        target_lengths: Integers `[N]`, in positions.
        max_length: Longer pairs, and pairs with an empty side, do not count.
        max_shapes: Most lengths to choose.
        multiple: Lengths are rounded up to a multiple of this.

    Returns:
        (source length, target length), the cheapest first; every pair that counts
        fits at least one, and each is the cheapest for some pair. Empty if none
        counts.
    """
    counts = _histogram(source_lengths, target_lengths, max_length, multiple)
    if not counts.any():
        return []
    boxes = [_box(counts, 0, 0)]
    while len(boxes) < max_shapes:
        best = max(range(len(boxes)), key=lambda i: boxes[i].gain)
        if boxes[best].gain == 0:
            break
        boxes += [_box(*part) for part in boxes.pop(best).parts]
    sizes = _adjust(counts, [box.size for box in boxes])
    lengths = {
        (min(source * multiple, max_length), min(target * multiple, max_length))
        for source, target in sizes
    }
    return sorted(lengths, key=_cost)


def assign(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    lengths: list[tuple[int, int]],
) -> np.ndarray:
    """Returns `[N]` the index of the cheapest lengths that hold each pair, or -1.

    The integers are as small as possible, because there may be very many pairs.
    """
    bucket = np.full(len(source_lengths), -1, np.min_scalar_type(-len(lengths) - 1))
    # The most expensive first, so that the last assignment is the best.
    order = sorted(range(len(lengths)), key=lambda b: _cost(lengths[b]), reverse=True)
    for block in blocks(len(bucket)):
        sources, targets = source_lengths[block], target_lengths[block]
        present = (sources > 0) & (targets > 0)
        for b in order:
            source, target = lengths[b]
            fits = present & (sources <= source) & (targets <= target)
            np.putmask(bucket[block], fits, b)
    return bucket


def members(bucket: np.ndarray, count: int) -> list[np.ndarray]:
    """The indices of the pairs in each of `count` buckets, in order.

    They have 32 bits if possible, because those of all pairs stay in memory.
    """
    dtype = np.uint32 if len(bucket) <= 1 << 32 else np.uint64
    parts = [[np.zeros(0, dtype)] for _ in range(count)]
    for block in blocks(len(bucket)):
        order = np.argsort(bucket[block], kind="stable")
        # Pairs in no bucket come first.
        ends = np.searchsorted(bucket[block], np.arange(count), sorter=order)
        for found, pairs in zip(parts, np.split(order, ends)[1:], strict=True):
            found.append((pairs + block.start).astype(dtype))
    return [np.concatenate(parts.pop(0)) for _ in range(count)]


def blocks(count: int) -> Iterator[slice]:
    """Consecutive slices of an array with `count` entries."""
    for start in range(0, count, BLOCK):
        yield slice(start, min(start + BLOCK, count))


def _cost(lengths: tuple[int, int]) -> tuple[int, tuple[int, int]]:
    return sum(lengths), lengths


def _histogram(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    max_length: int,
    multiple: int,
) -> np.ndarray:
    """Counts of pairs by source and target length, in cells of `multiple`."""
    cells = -(-max_length // multiple)
    counts = np.zeros(cells * cells, np.int64)
    for block in blocks(len(source_lengths)):
        sources, targets = source_lengths[block], target_lengths[block]
        counted = assign(sources, targets, [(max_length, max_length)]) == 0
        rows = (sources[counted].astype(np.int64) - 1) // multiple
        columns = (targets[counted].astype(np.int64) - 1) // multiple
        counts += np.bincount(rows * cells + columns, minlength=cells * cells)
    return counts.reshape(cells, cells)


def _adjust(counts: np.ndarray, sizes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Moves sizes, in cells, to a local minimum of the padded positions."""
    rows, columns = (max(side) for side in zip(*sizes, strict=True))
    counts = counts[:rows, :columns]
    total = _padded(counts, sizes)
    moved = True
    while moved:
        moved = False
        for i, (down, right) in product(range(len(sizes)), _MOVES):
            size = sizes[i][0] + down, sizes[i][1] + right
            trial = sizes[:i] + [size] + sizes[i + 1 :]
            if (padded := _padded(counts, trial)) < total:
                total, sizes, moved = padded, trial, True
    for size in list(sizes):
        rest = [other for other in sizes if other != size]
        if _padded(counts, rest) == total:
            sizes = rest
    return sizes


def _padded(counts: np.ndarray, sizes: list[tuple[int, int]]) -> int:
    """Padded cells if each pair takes the cheapest size that holds it."""
    # So expensive that a pair which fits nowhere outweighs any saving elsewhere.
    cheapest = np.full(counts.shape, sum(counts.shape) * (int(counts.sum()) + 1))
    for rows, columns in sizes:
        part = cheapest[: max(rows, 0), : max(columns, 0)]
        np.minimum(part, rows + columns, out=part)
    return int((counts * cheapest).sum())


class _Box(NamedTuple):
    """A rectangle of the length histogram and the best way to divide it.

    Attributes:
        size: Padded (source, target) lengths of its pairs, in cells.
        gain: Padded cells that dividing it saves.
        parts: The rectangles that it is divided into.
    """

    size: tuple[int, int]
    gain: int
    parts: Sequence[_Part]


def _box(counts: np.ndarray, row: int, column: int) -> _Box:
    size, cost = _tight(counts, row, column)
    best = _Box(size, 0, ())
    for axis in (0, 1):
        for place in range(1, counts.shape[axis]):
            first, second = np.split(counts, [place], axis=axis)
            down, right = (place, 0) if axis == 0 else (0, place)
            parts = (first, row, column), (second, row + down, column + right)
            gain = cost - sum(_tight(*part)[1] for part in parts)
            if gain > best.gain:
                best = _Box(size, gain, parts)
    return best


def _tight(counts: np.ndarray, row: int, column: int) -> tuple[tuple[int, int], int]:
    """Returns the padded size of a rectangle, and the total of its pairs, in cells."""
    sources = np.flatnonzero(counts.any(axis=1))
    if not len(sources):
        return (0, 0), 0
    targets = np.flatnonzero(counts.any(axis=0))
    size = row + int(sources[-1]) + 1, column + int(targets[-1]) + 1
    return size, int(counts.sum()) * sum(size)
