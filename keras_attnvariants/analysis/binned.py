"""Sentences in bins, and the BLEU of each bin from the statistics of its sentences."""

from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from keras_attnvariants.utils.checks import check_integer


class BinScore(NamedTuple):
    """BLEU of a system on the sentences of a bin.

    Attributes:
        by: what the sentences are sorted by.
        low, high: smallest and largest value of a sentence of the bin.
        sentences: how many there are.
        system: name of the system.
        bleu: its BLEU.
        bleu_low, bleu_high: 95 % interval, from resampled sentences.
        difference: to the first system; `None` for itself.
        difference_low, difference_high: its 95 % interval, from the same samples.
    """

    by: str
    low: float
    high: float
    sentences: int
    system: str
    bleu: float
    bleu_low: float
    bleu_high: float
    difference: float | None
    difference_low: float | None
    difference_high: float | None


def statistics(
    metric: BLEU, hypotheses: Iterable[str], references: Iterable[str]
) -> np.ndarray:
    """Lengths, matches and n-grams of each sentence, int `[n, 10]`.

    They add up: the BLEU of a corpus is that of their sum.
    """
    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        found = metric.corpus_score([hypothesis], [[reference]])
        rows.append([found.sys_len, found.ref_len, *found.counts, *found.totals])
    return np.array(rows, "int64")


def bleu(sums: np.ndarray) -> float:
    """BLEU from the sum of `statistics`, smoothed as sacrebleu does by default."""
    hypothesis, reference, *counts = sums.tolist()
    order = len(counts) // 2
    return BLEU.compute_bleu(
        counts[:order], counts[order:], hypothesis, reference, smooth_method="exp"
    ).score


@dataclass(frozen=True)
class Binned:
    """Sentences in bins, and what the BLEU of each system is made of.

    Attributes:
        by: what they are sorted by.
        values: of the sentences, `[n]`.
        bins: numbers of their bins, int `[n]`; -1 for none.
        statistics: `[n, systems, 10]`.
    """

    by: str
    values: np.ndarray
    bins: np.ndarray
    statistics: np.ndarray

    def rows(self, names: list[str], samples: int, seed: int) -> Iterator[BinScore]:
        """A row for each bin that has sentences, and each system."""
        check_integer("samples", samples)
        for number in sorted(set(self.bins[self.bins >= 0].tolist())):
            chosen = self.bins == number
            values, statistics = self.values[chosen], self.statistics[chosen]
            drawn = resampled(statistics, samples, seed)
            whole = [bleu(sums) for sums in statistics.sum(0)]
            for index, name in enumerate(names):
                differences: list[float | None] = [None] * 3
                if index:
                    spread = interval(drawn[:, index] - drawn[:, 0])
                    differences = [whole[index] - whole[0], *spread]
                yield BinScore(
                    self.by,
                    values.min(),
                    values.max(),
                    len(values),
                    name,
                    whole[index],
                    *interval(drawn[:, index]),
                    *differences,
                )


def resampled(statistics: np.ndarray, samples: int, seed: int) -> np.ndarray:
    """BLEU of the systems on sentences drawn with replacement, `[samples, systems]`."""
    rng, count = np.random.default_rng(seed), len(statistics)
    draws = (statistics[rng.integers(count, size=count)] for _ in range(samples))
    return np.array([[bleu(sums) for sums in draw.sum(0)] for draw in draws])


def interval(values: np.ndarray) -> tuple[float, float]:
    """Bounds that 95 % of the values are between."""
    low, high = np.percentile(values, (2.5, 97.5))
    return float(low), float(high)
