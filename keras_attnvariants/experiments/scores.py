"""Scores of all systems on all test sets, and tests of their differences, by scipy.

Over seeds: Welch's and the paired t-test. Over sentences: paired bootstrap (Koehn 2004)
and approximate randomisation (Riezler and Maxwell 2005) of the mean score over seeds. A
sentence is drawn, or exchanged, with its translations by all seeds at once, because
translations of one sentence are not independent.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics.base import Metric

from keras_attnvariants.backend.private import score_of_statistics
from keras_attnvariants.backend.private import sentence_statistics
from keras_attnvariants.evaluation.metrics import METRICS
from keras_attnvariants.evaluation.significance import holm
from keras_attnvariants.evaluation.significance import mean_interval
from keras_attnvariants.evaluation.significance import seed_tests
from keras_attnvariants.experiments.results import Difference
from keras_attnvariants.experiments.results import ScoreSummary
from keras_attnvariants.experiments.settings import ScoreSettings

# Translations by name of the system, and by seed.
Texts = Mapping[str, Mapping[int, Sequence[str]]]

# The p-values that are corrected for the number of systems.
TESTS = ("welch", "paired", "bootstrap", "randomization")


class SentenceTests(NamedTuple):
    """A difference over the sentences of a test set.

    Attributes:
        bootstrap, randomization: p-values.
        sentence_low, sentence_high: interval of the difference, by the bootstrap.
    """

    bootstrap: float
    randomization: float
    sentence_low: float
    sentence_high: float


class Translations(NamedTuple):
    """The translations of a test set by the runs of a system, as a metric counts them.

    Attributes:
        metric: sacrebleu's.
        statistics: counts of each sentence, `[n, k]`, by seed; they add up.
    """

    metric: Metric
    statistics: dict[int, np.ndarray]

    def scores(self) -> dict[int, float]:
        """The score of the test set by each seed."""
        return {
            seed: score_of_statistics(self.metric, found.sum(0))
            for seed, found in self.statistics.items()
        }

    def stacked(self, seeds: Sequence[int]) -> np.ndarray:
        """The statistics of the runs with these seeds, `[seeds, n, k]`.

        Without any, those of the first run.
        """
        chosen = seeds or list(self.statistics)[:1]
        return np.stack([self.statistics[seed] for seed in chosen])


def score_test_set(
    test_set: str,
    texts: Texts,
    references: Sequence[str],
    baseline: str,
    settings: ScoreSettings,
) -> tuple[list[ScoreSummary], list[Difference]]:
    """Scores of the systems on a test set, and tests against the baseline.

    Args:
        test_set: its name.
        texts: translations by system and seed.
        references: one of each sentence.
        baseline: name of the system that the others are compared with. Without it
            among the texts there are no differences.
        settings: metrics, intervals and tests.

    Returns:
        Scores and differences, by metric and system.
    """
    summaries: list[ScoreSummary] = []
    differences: list[Difference] = []
    for name in settings.metrics:
        metric = make_metric(name, settings.tokenize)
        name = label(metric)
        found = {}
        for system, by_seed in texts.items():
            counts = {
                seed: sentence_statistics(metric, lines, references)
                for seed, lines in by_seed.items()
            }
            found[system] = Translations(metric, counts)
            values = found[system].scores()
            summary = ScoreSummary(
                system,
                test_set,
                name,
                tuple(values),
                tuple(values.values()),
                *mean_interval(list(values.values()), settings.confidence),
                signature=str(metric.get_signature()),
            )
            summaries.append(summary)
        base = found.pop(baseline, None)
        if base is None:
            continue
        rows = {system: compare(own, base, settings) for system, own in found.items()}
        for test in TESTS:
            p_values = holm([row[test] for row in rows.values()])
            for row, value in zip(rows.values(), p_values, strict=True):
                row[f"{test}_holm"] = value
        differences += [
            Difference(system, test_set, name, **row)  # type: ignore[arg-type]
            for system, row in rows.items()
        ]
    return summaries, differences


def make_metric(name: str, tokenize: str = "13a") -> Metric:
    """The metric of this name."""
    return METRICS[name](**({"tokenize": tokenize} if name == "bleu" else {}))


def label(metric: Metric) -> str:
    """The name that sacrebleu shows for a metric, such as `"chrF2"`."""
    return metric.corpus_score(["a"], [["a"]]).name


def compare(
    system: Translations, baseline: Translations, settings: ScoreSettings
) -> dict[str, float | None]:
    """A system and the baseline, as fields of `Difference` before the correction."""
    first, second = system.scores(), baseline.scores()
    over_seeds = seed_tests(first, second, settings.confidence)
    over_sentences = sentence_tests(
        system, baseline, settings.samples, settings.confidence
    )
    return {
        "difference": fmean(first.values()) - fmean(second.values()),
        **over_seeds._asdict(),
        **over_sentences._asdict(),
    }


def sentence_tests(
    system: Translations,
    baseline: Translations,
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = 12345,
) -> SentenceTests:
    """Paired bootstrap and approximate randomisation of a system and the baseline.

    They have the runs of the seeds that both have; without any, the first run of each.

    Args:
        system, baseline: with equally many sentences.
        samples: number of resampled, and of shuffled, test sets.
        confidence: confidence of the interval.
        seed: seed of the draws.
    """
    from scipy import stats

    metric = system.metric
    common = [seed for seed in system.statistics if seed in baseline.statistics]
    ours, theirs = system.stacked(common), baseline.stacked(common)
    count = ours.shape[1]

    def mean(sums: np.ndarray) -> float:  # of [seeds, k]
        return fmean(score_of_statistics(metric, row) for row in sums)

    def resampled(drawn: np.ndarray) -> float:
        counts = np.bincount(drawn.astype(int), minlength=count)
        return mean(counts @ ours) - mean(counts @ theirs)

    def shuffled(kept: np.ndarray, exchanged: np.ndarray) -> float:
        first = mean(kept @ ours + exchanged @ theirs)
        return abs(first - mean(kept @ theirs + exchanged @ ours))

    real = resampled(np.arange(count))
    if count < 2 or np.array_equal(ours, theirs):
        return SentenceTests(1.0, 1.0, real, real)
    options = {"n_resamples": samples, "vectorized": False, "rng": seed}
    bootstrap = stats.bootstrap(
        [np.arange(count)],
        resampled,
        method="percentile",
        confidence_level=confidence,
        **options,
    )
    # As sacrebleu: the share of samples that differ by more than the test set does
    # when their mean is moved to 0. The test set counts as one of them.
    sizes = np.abs(bootstrap.bootstrap_distribution)
    larger = np.sum(sizes - sizes.mean() > abs(real))
    randomization = stats.permutation_test(
        [np.ones(count), np.zeros(count)],
        shuffled,
        permutation_type="samples",
        alternative="greater",
        **options,
    )
    return SentenceTests(
        float((larger + 1) / (samples + 1)),
        float(randomization.pvalue),
        *map(float, bootstrap.confidence_interval),
    )
