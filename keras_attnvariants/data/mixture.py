"""Mixtures: the share of each of several corpora in training, and its pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_attnvariants.utils.checks import check_positive


@dataclass(frozen=True)
class Mixture:
    """Shares of corpora whose pairs lie one corpus after another.

    Attributes:
        sizes: pairs of each corpus.
        weights: one for each corpus; its share is its weight over their sum. `None` for
            shares that follow from the sizes `n` by the temperature `T`: `n^(1/T)` over
            the sum of these. With 1 every pair is seen equally often, with a high one
            every corpus.
        temperature: not below 1.

    Raises:
        ValueError: a number is out of range, there are not as many weights as corpora,
            or both weights and a temperature are given.
    """

    sizes: tuple[int, ...]
    weights: tuple[float, ...] | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if check_positive("temperature", self.temperature) < 1:
            raise ValueError(
                f"`temperature` must not be below 1. Received: {self.temperature}"
            )
        if self.weights is None:
            return
        if self.temperature != 1:
            raise ValueError(
                "`weights` and `temperature` both say how often a corpus is seen: give "
                f"one of them. Received: {self.weights} and {self.temperature}"
            )
        if len(self.weights) != len(self.sizes):
            raise ValueError(
                "`weights` must be as many as the corpora. "
                f"Received: {len(self.weights)} for {len(self.sizes)} corpora"
            )
        for weight in self.weights:
            check_positive("weights", weight)

    def shares(self, counts: Sequence[int]) -> np.ndarray:
        """The share of each corpus in an epoch, given the pairs of each in batches."""
        sizes = np.asarray(counts, np.float64)
        powers = sizes ** (1.0 / self.temperature)
        parts = np.asarray(self.weights or powers) * (sizes > 0)
        return np.asarray(parts / parts.sum())

    def to_dict(self) -> dict[str, Any]:
        """The entries for the settings of a run."""
        weights = None if self.weights is None else list(self.weights)
        return {"data_weight": weights, "data_temperature": self.temperature}


class Draws:
    """The pairs that each epoch shows, by bucket.

    An epoch has as many pairs as there are, whatever the shares. The pairs of a corpus
    in a bucket have a fixed number of places, in proportion to their number, and take
    turns: their order is drawn anew whenever all have been seen, so that over epochs
    each pair of a corpus is seen as often as any other of it, up to one time.

    Args:
        members: indices of the pairs in each bucket.
        mixture: the corpora that the pairs are from.
        seed: the pairs of an epoch are a pure function of it and of the epoch.

    Attributes:
        counts: pairs of each bucket in an epoch.
    """

    def __init__(
        self, members: Sequence[np.ndarray], mixture: Mixture, seed: int
    ) -> None:
        ends = np.cumsum(mixture.sizes)
        # By bucket and corpus; the pairs of a bucket are in order.
        self._cells = [
            np.split(pairs, np.searchsorted(pairs, ends[:-1])) for pairs in members
        ]
        self._seed = seed
        sizes = np.array([[len(cell) for cell in cells] for cells in self._cells])
        totals = sizes.sum(axis=0)
        rates = mixture.shares(totals) * sizes.sum() / np.maximum(totals, 1)
        self._places = _rounded(sizes * rates)
        self.counts = [int(count) for count in self._places.sum(axis=1)]

    def epoch(self, epoch: int) -> list[np.ndarray]:
        """Indices of the pairs in each bucket."""
        return [
            np.concatenate(
                [
                    self._turn(cell, int(places), epoch, (bucket, corpus))
                    for corpus, (cell, places) in enumerate(
                        zip(cells, self._places[bucket], strict=True)
                    )
                ]
            )
            for bucket, cells in enumerate(self._cells)
        ]

    def _turn(
        self, cell: np.ndarray, places: int, epoch: int, where: tuple[int, int]
    ) -> np.ndarray:
        """An epoch's pairs of a corpus in a bucket."""
        if not places:
            return cell[:0]
        first, last = epoch * places, (epoch + 1) * places
        passes = range(first // len(cell), -(-last // len(cell)))
        order = np.concatenate(
            [
                np.random.default_rng([self._seed, turn, *where]).permutation(cell)
                for turn in passes
            ]
        )
        start = first - passes.start * len(cell)
        return order[start : start + places]


def _rounded(quotas: np.ndarray) -> np.ndarray:
    """Integers of the same sum, by the largest remainders."""
    quotas = np.round(quotas, 6)  # what should be whole is
    floors = np.floor(quotas)
    missing = int(round(quotas.sum() - floors.sum()))
    order = np.argsort((floors - quotas).ravel(), kind="stable")
    floors.ravel()[order[:missing]] += 1
    return np.asarray(floors, np.int64)
