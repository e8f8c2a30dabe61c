"""Intervals of means, and tests of systems against a baseline over seeds."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Mapping
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics.base import Metric

from keras_attnvariants.backend.private import score_of_statistics

# The probability with which a test should find a difference.
POWER = 0.8
# The level of significance for corrected p-values.
LEVEL = 0.05
# The difference whose number of seeds is reported, and the largest such number.
TARGET, MAX_SEEDS = 0.5, 100


class Mean(NamedTuple):
    """A mean with its standard deviation and interval, `None` for a single value."""

    mean: float
    deviation: float | None
    low: float | None
    high: float | None


class SeedTests(NamedTuple):
    """A difference from the baseline over seeds; what cannot be computed is `None`.

    Attributes:
        low, high: its interval by Dunnett's test, which holds for all systems together.
        dunnett: the p-value of that test, corrected for the number of systems.
        detectable: the difference that the test finds with a probability of `POWER`,
            given the observed standard deviation over seeds.
        seeds_needed: seeds of each system for a difference of `TARGET` to be found with
            this probability; `None` also if above `MAX_SEEDS`.
    """

    low: float | None = None
    high: float | None = None
    dunnett: float | None = None
    detectable: float | None = None
    seeds_needed: int | None = None


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


def resampled(
    metric: Metric,
    counts: np.ndarray,
    samples: int,
    seed: int = 12345,
    groups: Sequence[str] | None = None,
) -> np.ndarray:
    """Scores of resampled test sets (Koehn 2004).

    Args:
        metric: metric of sacrebleu.
        counts: its counts of each sentence, `[n, k]`, by `sentence_statistics`.
        samples: number of test sets.
        seed: seed of the draws, which are the same for any test set of `n` sentences.
        groups: one for each sentence; the sentences of a group are drawn together.
    """
    if groups is not None:
        _, rows = np.unique(groups, return_inverse=True)
        counts = np.stack([counts[rows == n].sum(0) for n in range(rows.max() + 1)])
    shares = np.full(len(counts), 1 / len(counts))
    drawn = np.random.default_rng(seed).multinomial(len(counts), shares, samples)
    return np.array([score_of_statistics(metric, sums) for sums in drawn @ counts])


def seed_tests(
    systems: Mapping[str, Mapping[int, float]],
    baseline: Mapping[int, float],
    confidence: float = 0.95,
) -> dict[str, SeedTests]:
    """Dunnett's test of systems against a baseline (1955).

    The test pools the variance over all systems, which may have any number of seeds.
    Its power is for decisions at `LEVEL`.

    Args:
        systems: scores by name of the system and by seed.
        baseline: scores by seed.
        confidence: confidence of the intervals.
    """
    from scipy import stats
    from scipy.optimize import brentq

    control, *groups = [[*scores.values()] for scores in (baseline, *systems.values())]
    freedom = sum(len(group) - 1 for group in (control, *groups))
    squares = sum(len(group) * np.var(group) for group in (control, *groups))
    if not any(map(np.ptp, (control, *groups))) or not groups:
        return {name: SeedTests() for name in systems}
    test = stats.dunnett(*groups, control=control, rng=np.random.default_rng(1))
    low, high = test.confidence_interval(confidence)
    deviation = math.sqrt(squares / freedom)
    errors = deviation * np.sqrt(
        [1 / len(group) + 1 / len(control) for group in groups]
    )
    decided = test.confidence_interval(1 - LEVEL)
    critical = (decided.high - decided.low)[0] / 2 / errors[0]
    effect = brentq(lambda x: power(x, critical, freedom) - POWER, 0, 9 * critical)
    needed = seeds_needed(deviation, len(groups))
    rows = np.transpose([low, high, test.pvalue, effect * errors]).tolist()
    tests = (SeedTests._make([*row, needed]) for row in rows)
    return dict(zip(systems, tests, strict=True))


def power(effect: float, critical: float, freedom: int) -> float:
    """The probability that the absolute noncentral t exceeds a critical value.

    Args:
        effect: the difference, in standard errors of a difference.
        critical: the critical value.
        freedom: degrees of freedom of the variance.
    """
    from scipy.stats import chi2
    from scipy.stats import norm

    # Averages over estimates of the deviation; `scipy.stats.nct` is NaN for large
    # effects.
    shares = (np.arange(1000) + 0.5) / 1000
    limits = critical * np.sqrt(chi2.ppf(shares, freedom) / freedom)
    return float(np.mean(norm.sf(limits - effect) + norm.sf(limits + effect)))


@cache
def critical_value(systems: int, seeds: int, confidence: float) -> float:
    """Critical value of Dunnett's test, which does not depend on the scores."""
    from scipy import stats

    scores = range(seeds)
    test = stats.dunnett(
        *[scores] * systems, control=scores, rng=np.random.default_rng(1)
    )
    error = statistics.stdev(scores) * math.sqrt(2 / seeds)
    return float(test.confidence_interval(confidence).high[0] / error)


def seeds_needed(deviation: float, systems: int) -> int | None:
    """See `SeedTests`; the deviation is pooled, and `systems` excludes the baseline."""

    def finds(seeds: int) -> bool:
        effect = TARGET / deviation / math.sqrt(2 / seeds)
        critical = critical_value(systems, seeds, 1 - LEVEL)
        return power(effect, critical, (systems + 1) * (seeds - 1)) >= POWER

    found = bisect_left(range(MAX_SEEDS + 1), True, lo=2, key=finds)
    return found if found <= MAX_SEEDS else None


def holm(values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(values)
    weighted = np.array(values)[order] * np.arange(len(values), 0, -1)
    corrected = np.minimum(np.maximum.accumulate(weighted), 1.0)
    return [float(value) for value in corrected[np.argsort(order)]]
