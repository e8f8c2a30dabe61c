"""Batch plans: sentence pairs in a few fixed shapes under a token budget.

XLA compiles a program per shape, and padding is wasted work. The plan therefore chooses
a few (rows, source length, target length) shapes that fit the lengths of the corpus,
and every batch has exactly one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keras_attnvariants.data.bucketing import assign
from keras_attnvariants.data.bucketing import choose_lengths
from keras_attnvariants.data.bucketing import members
from keras_attnvariants.data.mixing import Mixture
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer


class BatchShape(NamedTuple):
    """The fixed size of a batch: rows, padded source and target positions."""

    rows: int
    source_length: int
    target_length: int


class BatchPlan:
    """Assigns sentence pairs to batches as a pure function of (seed, batch index).

    Pairs are bucketed by length. The buckets come from splitting the plane of
    (source length, target length) greedily, each time where most padding is
    saved, until there are `max_shapes` of them; a pair goes to the smallest
    bucket that holds it. All batches of a bucket have the same number of rows, chosen
    up to a sixteenth below the maximum if that leaves fewer empty rows in its last
    batch.

    Every epoch shows every pair once, in an order drawn from (seed, epoch). Batch
    `i` is batch `i % num_batches` of epoch `i // num_batches`.

    A plan keeps 4 bytes for each pair, and 4 for each of the two epochs that batches
    are read from. It is built in blocks: with 16-bit lengths, this takes 4 more bytes
    for each pair.

    Args:
        source_lengths: Integers `[N]`, source positions of each pair.
        target_lengths: Integers `[N]`, target positions of each pair (the sentence
            with its EOS).
        batch_tokens: Maximum number of padded source and target positions in a batch.
        seed: Non-negative integer, or `None` for the order of the corpus within
            each bucket, the same in every epoch.
        max_length: Longest source or target, in positions. Longer pairs, and
            pairs with an empty side, are skipped and counted.
        max_shapes: Maximum number of shapes. With 32, about a tenth of the positions of
            newspaper text are padding, and less for shorter sentences.
        multiple: Lengths are rounded up to a multiple of this; 8 suits tensor cores,
            and pads more.
        shapes: The shapes of another plan, to compile nothing new; pairs that
            fit none are skipped and counted. `batch_tokens`, `max_length`,
            `max_shapes` and `multiple` are not used then.
        mixture: Shares of several corpora, instead of each pair once per epoch. The
            number of pairs per epoch stays the same. It needs a seed.

    Raises:
        ValueError: If no pair is left, or an argument is out of range.

    Example:

    >>> from keras_attnvariants.data import BatchPlan
    >>> plan = BatchPlan([3, 4, 9, 10], [4, 4, 8, 12], batch_tokens=64, seed=1)
    >>> shape, pairs = plan.batch(0)
    >>> shape in plan.shapes, len(pairs) <= shape.rows
    (True, True)
    """

    def __init__(
        self,
        source_lengths: npt.ArrayLike,
        target_lengths: npt.ArrayLike,
        batch_tokens: int = 4096,
        seed: int | None = 0,
        max_length: int = 256,
        max_shapes: int = 32,
        multiple: int = 2,
        shapes: tuple[BatchShape, ...] | None = None,
        mixture: Mixture | None = None,
    ) -> None:
        sides = np.asarray(source_lengths), np.asarray(target_lengths)
        if sides[0].shape != sides[1].shape or sides[0].ndim != 1:
            raise ValueError(
                "`source_lengths` and `target_lengths` must be vectors of one length. "
                f"Received: {sides[0].shape} and {sides[1].shape}"
            )
        check_integer("batch_tokens", batch_tokens)
        check_integer("max_length", max_length)
        check_integer("max_shapes", max_shapes)
        check_integer("multiple", multiple)
        self.seed = check_optional_integer("seed", seed, minimum=0)
        if shapes is None:
            lengths = choose_lengths(*sides, max_length, max_shapes, multiple)
        else:
            lengths = [shape[1:] for shape in shapes]
        bucket = assign(*sides, lengths)
        found = members(bucket, len(lengths))
        self.num_pairs = sum(map(len, found))
        self.num_skipped = len(bucket) - self.num_pairs
        if self.num_pairs == 0:
            raise ValueError(
                "No sentence pair is left: all are empty or longer than allowed "
                f"(max_length={max_length}). Received: {len(bucket)} pairs"
            )
        self._members, self._mixture = found, mixture
        pairs_by_bucket = self._pairs_of_epoch(0)
        self.shapes = shapes or tuple(
            BatchShape(_rows(max(len(pairs), 1), batch_tokens, *size), *size)
            for pairs, size in zip(pairs_by_bucket, lengths, strict=True)
        )
        # One entry per batch of an epoch: its bucket, and its place in the bucket.
        counts = [
            -(-len(pairs) // shape.rows)
            for pairs, shape in zip(pairs_by_bucket, self.shapes, strict=True)
        ]
        self._bucket = np.repeat(np.arange(len(counts)), counts)
        self._place = np.concatenate([np.arange(count) for count in counts])
        # Two epochs are kept: prefetching crosses their boundary.
        self._epoch = lru_cache(maxsize=2)(self._draw)

    @property
    def report(self) -> str:
        """The number of pairs that are skipped, and why."""
        return (
            f"Left out: {self.num_skipped:,} of {self.num_skipped + self.num_pairs:,} "
            "pairs, empty or longer than the model reads."
        )

    @property
    def num_batches(self) -> int:
        """Batches in an epoch."""
        return len(self._bucket)

    def batch(self, index: int) -> tuple[BatchShape, np.ndarray]:
        """Returns the shape of batch `index` and the indices of its pairs.

        There are at most `shape.rows` pairs; the other rows are padding.
        """
        index = check_integer("index", index, minimum=0)
        epoch, position = divmod(index, self.num_batches)
        order, pairs_of = self._epoch(epoch)
        entry = order[position]
        bucket, place = self._bucket[entry], self._place[entry]
        shape = self.shapes[bucket]
        return shape, pairs_of[bucket][place * shape.rows : (place + 1) * shape.rows]

    def _pairs_of_epoch(self, epoch: int) -> list[np.ndarray]:
        """Indices of the pairs in each bucket, the same number in every epoch."""
        if self._mixture is None or self.seed is None:
            return self._members
        return mixed_pairs(self._members, self._mixture, self.seed, epoch)

    def _draw(self, epoch: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """The order of an epoch's batches, and the pairs of each bucket in order."""
        found = self._pairs_of_epoch(epoch)
        if self.seed is None:
            return np.arange(self.num_batches), found
        random = np.random.default_rng([self.seed, epoch])
        order = random.permutation(self.num_batches)
        return order, [random.permutation(pairs) for pairs in found]


def _rows(count: int, batch_tokens: int, source_length: int, target_length: int) -> int:
    most = batch_tokens // (source_length + target_length)
    if most == 0:
        raise ValueError(
            "`batch_tokens` must hold at least one pair: raise it, or lower "
            f"`max_length`. Received: batch_tokens={batch_tokens} for a pair of "
            f"{source_length} + {target_length} positions"
        )
    fewest_batches = -(-count // most)
    highest = -(-count // fewest_batches)
    # The fewest empty rows; among ties, the most rows.
    choices = range(highest, highest - highest // 16 - 1, -1)
    return min(choices, key=lambda rows: -count % rows)


def mixed_pairs(
    members: Sequence[np.ndarray], mixture: Mixture, seed: int, epoch: int
) -> list[np.ndarray]:
    """The pairs of an epoch from a mixture of corpora, by bucket.

    Whatever the shares, an epoch has as many pairs as all corpora together. Within a
    bucket, each corpus has a fixed number of places, in proportion to its pairs there.
    Its pairs take turns, in an order that is drawn anew whenever all have been seen:
    over epochs, all pairs of a corpus are seen equally often, up to a difference of
    one.

    Args:
        members: indices of the pairs in each bucket.
        mixture: the corpora that the pairs are from.
        seed, epoch: the pairs are a pure function of them.
    """
    ends = np.cumsum(mixture.sizes)
    # By bucket and corpus; the pairs of a bucket are in order.
    cells = [np.split(pairs, np.searchsorted(pairs, ends[:-1])) for pairs in members]
    sizes = np.array([[len(cell) for cell in row] for row in cells])
    totals = sizes.sum(axis=0)
    rates = mixture.shares(totals) * sizes.sum() / np.maximum(totals, 1)
    found = [[pairs[:0]] for pairs in members]
    for (bucket, corpus), places in np.ndenumerate(_rounded(sizes * rates)):
        if not places:
            continue
        cell = cells[bucket][corpus]
        # The turns of these pairs that the epoch is part of, each in its own order.
        first, start = divmod(epoch * places, len(cell))
        last = -(-(epoch + 1) * places // len(cell))
        orders = [
            np.random.default_rng([seed, turn, bucket, corpus]).permutation(cell)
            for turn in range(first, last)
        ]
        found[bucket].append(np.concatenate(orders)[start : start + places])
    return [np.concatenate(turns) for turns in found]


def _rounded(quotas: np.ndarray) -> np.ndarray:
    """Rounds to integers with the same sum, by the largest-remainder method."""
    quotas = np.round(quotas, 6)  # integers up to rounding
    floors = np.floor(quotas)
    missing = int(round(quotas.sum() - floors.sum()))
    order = np.argsort((floors - quotas).ravel(), kind="stable")
    floors.ravel()[order[:missing]] += 1
    return np.asarray(floors, np.int64)
