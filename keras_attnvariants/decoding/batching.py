"""Packing sequences of any length into batches of few shapes."""

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np

from keras_attnvariants.utils.checks import check_integer


class Batch(NamedTuple):
    """Which sequences go together.

    Attributes:
        indices: int `[n]`, indices of the sequences, `n <= size`.
        size: number of rows of the batch.
        length: number of columns.
    """

    indices: np.ndarray
    size: int
    length: int


def plan_batches(
    lengths: Sequence[int], sizes: Sequence[int], buckets: Sequence[int]
) -> Iterator[Batch]:
    """Groups sequences of similar length, the longest first.

    Only the last batch may be smaller than the largest size, so that a few texts are
    one batch however much their lengths differ. The first batch needs the most memory.

    Args:
        lengths: of the sequences, at most `buckets[-1]`.
        sizes: allowed batch sizes, ascending.
        buckets: allowed lengths, ascending.

    Yields:
        A `Batch` with the smallest size and length that hold its sequences.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    for start in range(0, len(order), sizes[-1]):
        indices = order[start : start + sizes[-1]]
        longest = lengths[indices[0]]
        yield Batch(
            indices,
            size=next(size for size in sizes if size >= len(indices)),
            length=next(length for length in buckets if length >= longest),
        )


def pad_sequences(
    sequences: Sequence[Sequence[int]], size: int, length: int, pad_id: int
) -> np.ndarray:
    """Sequences of ids as one array, int32 `[size, length]`, padded with `pad_id`."""
    ids = np.full((size, length), pad_id, dtype=np.int32)
    for row, sequence in zip(ids, sequences, strict=False):
        row[: len(sequence)] = sequence
    return ids


def check_sizes(name: str, values: Any, largest: int | None = None) -> tuple[int, ...]:
    """The distinct integers among `values`, cut off at `largest`, in ascending order.

    Raises:
        ValueError: `values` is not a sequence of positive integers, or it is empty.
    """
    if not isinstance(values, Sequence) or not values:
        raise ValueError(
            f"`{name}` must be a non-empty sequence of integers. Received: {values!r}"
        )
    sizes = (check_integer(name, value) for value in values)
    return tuple(sorted({min(size, largest or size) for size in sizes}))
