"""Intervals of means, and tests of systems against a baseline over seeds."""

import math
import statistics
from bisect import bisect_left
from collections.abc import Mapping
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

# The probability with which a test should find a difference.
POWER = 0.8
# The difference whose number of seeds is told, and the largest such number.
TARGET, MOST_SEEDS = 0.5, 100


class Mean(NamedTuple):
    """A mean and its interval; without a spread, these are `None`."""

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
            if the standard deviation over seeds is the one that was seen.
        seeds_needed: seeds of each system with which it finds one of `TARGET` so
            often; `None` for more than `MOST_SEEDS`, too.
        paired: p-value of the t-test over pairs of runs with the same seed.
    """

    low: float | None = None
    high: float | None = None
    dunnett: float | None = None
    detectable: float | None = None
    seeds_needed: int | None = None
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
    systems: Mapping[str, Mapping[int, float]],
    baseline: Mapping[int, float],
    confidence: float = 0.95,
) -> dict[str, SeedTests]:
    """Dunnett's test of systems against a baseline (1955), and paired t-tests.

    Dunnett's pools the variance over all systems, which may have any number of seeds.

    Args:
        systems: scores by name of the system and by seed.
        baseline: scores by seed.
        confidence: confidence of the intervals; what is left to 1 is the level.
    """
    from scipy import stats
    from scipy.optimize import brentq

    tests = {
        name: SeedTests(paired=paired(own, baseline)) for name, own in systems.items()
    }
    control, *groups = [[*scores.values()] for scores in (baseline, *systems.values())]
    freedom = sum(len(group) - 1 for group in (control, *groups))
    squares = sum(len(group) * np.var(group) for group in (control, *groups))
    if not groups or not squares:
        return tests
    test = stats.dunnett(*groups, control=control, rng=np.random.default_rng(1))
    interval = test.confidence_interval(confidence)
    deviation = math.sqrt(squares / freedom)
    needed = seeds_needed(deviation, len(groups), confidence)
    rows = zip(tests, groups, interval.low, interval.high, test.pvalue, strict=True)
    for name, group, low, high, p_value in rows:
        error = deviation * math.sqrt(1 / len(group) + 1 / len(control))
        critical = (high - low) / 2 / error
        effect = brentq(
            lambda x, c=critical: power(x, c, freedom) - POWER, 0, 9 * critical
        )
        tests[name] = tests[name]._replace(
            low=float(low),
            high=float(high),
            dunnett=float(p_value),
            detectable=effect * error,
            seeds_needed=needed,
        )
    return tests


def paired(system: Mapping[int, float], baseline: Mapping[int, float]) -> float | None:
    """P-value of the t-test over pairs of runs with the same seed."""
    from scipy import stats

    common = [(system[seed], baseline[seed]) for seed in system if seed in baseline]
    if len(common) < 2 or np.ptp(np.subtract(*np.transpose(common))) == 0:
        return None
    return float(stats.ttest_rel(*np.transpose(common)).pvalue)


def power(effect: float, critical: float, freedom: int) -> float:
    """The probability that the size of a noncentral t exceeds a critical value.

    Args:
        effect: the difference, in standard errors of a difference.
        critical: the critical value.
        freedom: degrees of freedom of the variance.
    """
    from scipy.stats import chi2
    from scipy.stats import norm

    # Over the estimates of the deviation; `scipy.stats.nct` is NaN for large effects.
    shares = (np.arange(1000) + 0.5) / 1000
    limits = critical * np.sqrt(chi2.ppf(shares, freedom) / freedom)
    return float(np.mean(norm.sf(limits - effect) + norm.sf(limits + effect)))


@cache
def critical_value(systems: int, seeds: int, confidence: float) -> float:
    """Critical value of Dunnett's test, which is the same for any scores."""
    from scipy import stats

    scores = range(seeds)
    test = stats.dunnett(
        *[scores] * systems, control=scores, rng=np.random.default_rng(1)
    )
    error = statistics.stdev(scores) * math.sqrt(2 / seeds)
    return float(test.confidence_interval(confidence).high[0] / error)


def seeds_needed(deviation: float, systems: int, confidence: float) -> int | None:
    """See `SeedTests`; the deviation is pooled, the baseline no system."""

    def finds(seeds: int) -> bool:
        effect = TARGET / deviation / math.sqrt(2 / seeds)
        critical = critical_value(systems, seeds, confidence)
        return power(effect, critical, (systems + 1) * (seeds - 1)) >= POWER

    found = bisect_left(range(MOST_SEEDS + 1), True, lo=2, key=finds)
    return found if found <= MOST_SEEDS else None


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
