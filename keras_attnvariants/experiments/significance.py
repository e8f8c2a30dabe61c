"""Intervals and tests of a comparison: over seeds and over sentences.

Over seeds: Student's t for a mean, Welch's and the paired t-test for a difference.
Over sentences: paired bootstrap (Koehn 2004) and approximate randomisation (Riezler and
Maxwell 2005) of the mean score over seeds. A sentence is drawn, or exchanged, with its
translations by all seeds at once: translations of one sentence are not independent.
With one seed, both are the tests of sacrebleu, draw for draw.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics.base import Metric

# That of sacrebleu.
SEED = 12345


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


class SentenceTests(NamedTuple):
    """A difference over the sentences of a test set.

    Attributes:
        bootstrap, randomization: p-values.
        low, high: interval of the difference, by the bootstrap.
    """

    bootstrap: float
    randomization: float
    low: float
    high: float


class Translations(NamedTuple):
    """What a metric needs of the translations of a test set by a system.

    Attributes:
        metric: sacrebleu's.
        statistics: of each sentence, `[seeds, n, k]`; they add up.
    """

    metric: Metric
    statistics: np.ndarray

    def scores(self, sums: np.ndarray) -> np.ndarray:
        """Scores `[…]` of sums of statistics `[…, k]`."""
        flat = sums.reshape(-1, sums.shape[-1])
        compute: Callable[[Any], Any] = self.metric._compute_score_from_stats
        found = [compute(row).score for row in flat]
        return np.reshape(found, sums.shape[:-1])

    def seed_scores(self) -> list[float]:
        """The score of the whole test set by each seed."""
        return self.scores(self.statistics.sum(1)).tolist()

    def mean_scores(self, counts: np.ndarray) -> np.ndarray:
        """Mean score over seeds `[samples]`; a sentence counts so many times.

        Args:
            counts: `[samples, n]`.
        """
        return self.scores(counts @ self.statistics).mean(0)


def statistics_of(
    metric: Metric, texts: Sequence[Sequence[str]], references: Sequence[str]
) -> Translations:
    """What a metric needs of the translations by each seed of a system."""
    found = [metric._extract_corpus_statistics(t, [list(references)]) for t in texts]
    return Translations(metric, np.array(found, "float64"))


def seed_tests(
    system: Mapping[int, float], baseline: Mapping[int, float], confidence: float = 0.95
) -> SeedTests:
    """The t-tests between the scores of a system and those of the baseline.

    Args:
        system, baseline: scores by seed.
        confidence: of the interval.
    """
    from scipy import stats

    first, second = list(system.values()), list(baseline.values())
    common = [seed for seed in system if seed in baseline]
    tests = SeedTests()
    if min(len(first), len(second)) > 1 and max(map(np.ptp, (first, second))) > 0:
        welch = stats.ttest_ind(first, second, equal_var=False)
        low, high = welch.confidence_interval(confidence)
        tests = SeedTests(float(low), float(high), float(welch.pvalue))
    differences = [system[seed] - baseline[seed] for seed in common]
    if len(common) > 1 and np.ptp(differences) > 0:
        paired = stats.ttest_1samp(differences, 0.0)
        tests = tests._replace(paired=float(paired.pvalue))
    return tests


def sentence_tests(
    system: Translations,
    baseline: Translations,
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = SEED,
) -> SentenceTests:
    """Paired bootstrap and approximate randomisation of a system and the baseline.

    Args:
        system, baseline: with equally many sentences and seeds.
        samples: number of resampled, and of shuffled, test sets.
        confidence: of the interval.
        seed: of the draws.
    """
    count = system.statistics.shape[1]
    drawn = draws(count, samples, seed)
    differences = system.mean_scores(drawn) - baseline.mean_scores(drawn)
    whole = np.ones((1, count))
    real = system.mean_scores(whole) - baseline.mean_scores(whole)
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(differences, (tail, 100 - tail))
    shuffled = shuffled_differences(system, baseline, samples, seed)
    absolute = np.abs(differences)
    is_same = np.array_equal(system.statistics, baseline.statistics)
    return SentenceTests(
        1.0 if is_same else p_value(absolute - absolute.mean(), abs(real[0])),
        1.0 if is_same else p_value(np.abs(shuffled), abs(real[0])),
        float(low),
        float(high),
    )


def draws(count: int, samples: int, seed: int) -> np.ndarray:
    """How often each sentence was drawn, `[samples, count]`, with replacement."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(count, size=(samples, count), replace=True)
    return np.stack([np.bincount(row, minlength=count) for row in chosen])


def shuffled_differences(
    system: Translations, baseline: Translations, samples: int, seed: int
) -> np.ndarray:
    """Differences `[samples]` after sentences were exchanged between two systems."""
    count = system.statistics.shape[1]
    rng = np.random.default_rng(seed)
    kept = rng.integers(2, size=(samples, count), dtype=bool).astype("float64")
    first = kept @ baseline.statistics + (1 - kept) @ system.statistics
    second = (1 - kept) @ baseline.statistics + kept @ system.statistics
    metric = system.metric
    scores = [Translations(metric, x).scores(x).mean(0) for x in (first, second)]
    return scores[0] - scores[1]


def p_value(values: np.ndarray, real: float) -> float:
    """Share of the values above the real one, which counts as one of them."""
    return float((np.sum(values > real) + 1) / (len(values) + 1))


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
