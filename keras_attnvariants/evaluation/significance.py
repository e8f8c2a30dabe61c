"""Intervals of means, and tests of the difference between two systems over seeds.

Tests over the sentences of a test set are those of `sacrebleu.significance`.
"""

import math
import statistics
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Mean(NamedTuple):
    """A mean and its interval; without a spread, these are `None`."""

    mean: float
    deviation: float | None
    low: float | None
    high: float | None


class SeedTests(NamedTuple):
    """A difference of means over seeds; what cannot be computed is `None`.

    Attributes:
        low, high: interval of the difference (Welch).
        welch, paired: p-values of the t-tests.
    """

    low: float | None = None
    high: float | None = None
    welch: float | None = None
    paired: float | None = None


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Mean:
    """Mean, standard deviation and Student's interval of the mean.

    >>> mean_interval([1.0, 2.0, 3.0]).deviation
    1.0
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Mean(mean, None, None, None)
    from scipy import stats

    deviation = statistics.stdev(values)
    t = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1))
    half = t * deviation / math.sqrt(len(values))
    return Mean(mean, deviation, mean - half, mean + half)


def seed_tests(
    system: Mapping[int, float], baseline: Mapping[int, float], confidence: float = 0.95
) -> SeedTests:
    """The t-tests between the scores of a system and those of the baseline.

    Args:
        system, baseline: scores by seed.
        confidence: confidence of the interval.
    """
    from scipy import stats

    first, second = list(system.values()), list(baseline.values())
    tests = SeedTests()
    if min(len(first), len(second)) > 1 and max(map(np.ptp, (first, second))) > 0:
        welch = stats.ttest_ind(first, second, equal_var=False)
        low, high = welch.confidence_interval(confidence)
        tests = SeedTests(float(low), float(high), float(welch.pvalue))
    common = [(system[seed], baseline[seed]) for seed in system if seed in baseline]
    if len(common) > 1 and np.ptp(np.subtract(*np.transpose(common))) > 0:
        paired = stats.ttest_rel(*np.transpose(common))
        tests = tests._replace(paired=float(paired.pvalue))
    return tests


def holm(values: Sequence[float | None]) -> list[float | None]:
    """P-values corrected for their number (Holm 1979); `None` stays and counts not.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    known = sorted((p, index) for index, p in enumerate(values) if p is not None)
    corrected: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        corrected[index] = largest
    return corrected
