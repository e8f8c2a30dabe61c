"""Scores of all systems on all test sets, and tests of their differences.

Dunnett's test is over seeds. The paired bootstrap (Koehn 2004) and approximate
randomisation (Riezler and Maxwell 2005) are over sentences, for the mean score over
seeds. A sentence is drawn, or exchanged, with its translations by all seeds at once,
because translations of one sentence are not independent. A hierarchical bootstrap is
over both: it draws seeds for each system, and then the same sentences for both systems.
"""

import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from statistics import fmean
from types import MappingProxyType
from typing import Any
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics.base import Metric

from keras_attnvariants.backend.private import score_of_statistics
from keras_attnvariants.backend.private import sentence_statistics
from keras_attnvariants.evaluation.significance import holm
from keras_attnvariants.evaluation.significance import mean_interval
from keras_attnvariants.evaluation.significance import resampled
from keras_attnvariants.evaluation.significance import seed_tests
from keras_attnvariants.experiments.results import Difference
from keras_attnvariants.experiments.results import ScoreSummary
from keras_attnvariants.experiments.settings import ScoreSettings
from keras_attnvariants.utils.metrics import label
from keras_attnvariants.utils.metrics import make_metric

# Tests whose p-values are corrected for the number of systems.
TESTS = ("bootstrap", "randomization")


class SentenceTests(NamedTuple):
    """A difference over the sentences of a test set.

    Attributes:
        bootstrap, randomization: p-values.
        sentence_low, sentence_high: interval of the difference, by the bootstrap.
        both_low, both_high: interval over seeds too, by the hierarchical bootstrap;
            `None` unless both systems have several seeds.
    """

    bootstrap: float
    randomization: float
    sentence_low: float
    sentence_high: float
    both_low: float | None = None
    both_high: float | None = None


@dataclass(frozen=True)
class Translations:
    """Counts from which a metric scores the translations of a test set by one system.

    Attributes:
        metric: metric of sacrebleu.
        statistics: counts of each sentence, `[n, k]`, by seed; they add up.
        samples: number of resampled test sets.
        draws: seed of the draws.
    """

    metric: Metric
    statistics: dict[int, np.ndarray]
    samples: int = 1000
    draws: int = 12345

    @cached_property
    def scores(self) -> dict[int, float]:
        """The score of the test set by each seed."""
        return {
            seed: score_of_statistics(self.metric, found.sum(0))
            for seed, found in self.statistics.items()
        }

    @property
    def mean(self) -> float:
        """The mean score of the test set over seeds."""
        return fmean(self.scores.values())

    @cached_property
    def resampled(self) -> dict[int, np.ndarray]:
        """Scores of resampled test sets by seed; the sentences of all systems agree."""
        return {
            seed: resampled(self.metric, found, self.samples, self.draws)
            for seed, found in self.statistics.items()
        }

    def with_drawn_seeds(self, rng: np.random.Generator) -> np.ndarray:
        """The means of resampled test sets over seeds that are drawn for each.

        Of `n` seeds, `n - 1` are drawn, so that the variance of the mean is not too
        small (Rao and Wu 1988).
        """
        scores = np.stack([*self.resampled.values()])
        rows = rng.integers(len(scores), size=(len(scores) - 1, self.samples))
        return np.take_along_axis(scores, rows, axis=0).mean(0)


def score_test_set(
    test_set: str,
    texts: Mapping[str, Mapping[int, Sequence[str]]],
    references: Sequence[str],
    language: str,
    baseline: str,
    settings: ScoreSettings,
    untrained: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> tuple[list[ScoreSummary], list[Difference]]:
    """Scores of the systems on a test set, and tests against the baseline.

    Args:
        test_set: its name.
        texts: translations by system and seed.
        references: one of each sentence.
        language: code of the language of the translations.
        baseline: name of the system that the others are compared with. If it is not
            among the texts, there are no differences.
        settings: metrics, intervals and tests.
        untrained: texts that no system made, by name. They have scores, but are in no
            test.

    Returns:
        Scores and differences, by metric and system.
    """
    summaries: list[ScoreSummary] = []
    differences: list[Difference] = []
    alone = [(name, {0: lines}) for name, lines in untrained.items()]
    for name in settings.metrics:
        metric = make_metric(name, settings.tokenize, language)
        name = label(name)
        found = {}
        for system, by_seed in chain(texts.items(), alone):
            counts = {
                seed: sentence_statistics(metric, lines, [references])
                for seed, lines in by_seed.items()
            }
            found[system] = Translations(metric, counts, settings.samples)
            seeds, values = zip(*found[system].scores.items(), strict=True)
            mean = mean_interval(values, settings.confidence)
            signature = str(metric.get_signature())
            summaries.append(
                ScoreSummary(system, test_set, name, seeds, values, *mean, signature)
            )
        found = {system: found[system] for system in texts}
        base = found.pop(baseline, None)
        if base is None:
            continue
        over_seeds = seed_tests(
            {system: own.scores for system, own in found.items()},
            base.scores,
            settings.confidence,
        )
        rows: dict[str, dict[str, Any]] = {
            system: {
                "difference": own.mean - base.mean,
                **over_seeds[system]._asdict(),
                **sentence_tests(own, base, settings.confidence)._asdict(),
            }
            for system, own in found.items()
        }
        for test in TESTS:
            p_values = holm([row[test] for row in rows.values()])
            for row, value in zip(rows.values(), p_values, strict=True):
                row[f"{test}_holm"] = value
        differences += [
            Difference(system, test_set, name, **row) for system, row in rows.items()
        ]
    return summaries, differences


def sentence_tests(
    system: Translations, baseline: Translations, confidence: float = 0.95
) -> SentenceTests:
    """Tests of a system against the baseline over sentences, and over seeds.

    The bootstrap uses all runs of both; randomization uses those of common seeds or,
    if there are none, the first run of each.

    Args:
        system, baseline: translations with the same numbers of sentences and samples.
        confidence: confidence of the intervals.
    """
    from scipy import stats

    metric, samples = system.metric, system.samples
    common = [seed for seed in system.statistics if seed in baseline.statistics]
    limits = (1 - confidence) / 2, (1 + confidence) / 2
    both: tuple[Any, ...] = (None, None)
    if min(len(system.statistics), len(baseline.statistics)) > 1:
        rng = np.random.default_rng(system.draws)
        varied = system.with_drawn_seeds(rng) - baseline.with_drawn_seeds(rng)
        both = tuple(map(float, np.quantile(varied, limits)))
    ours, theirs = (
        np.stack([each.statistics[seed] for seed in common or [*each.statistics][:1]])
        for each in (system, baseline)
    )

    def mean(sums: np.ndarray) -> float:  # of [seeds, k]
        return fmean(score_of_statistics(metric, row) for row in sums)

    def shuffled(kept: np.ndarray, exchanged: np.ndarray) -> float:
        first = mean(kept @ ours + exchanged @ theirs)
        return abs(first - mean(kept @ theirs + exchanged @ ours))

    real, count = system.mean - baseline.mean, ours.shape[1]
    if count < 2 or np.array_equal(ours, theirs):
        return SentenceTests(1.0, 1.0, real, real, *both)
    drawn = [np.mean([*each.resampled.values()], axis=0) for each in (system, baseline)]
    resampled = np.subtract(*drawn)
    # As in sacrebleu: shift the mean of the samples to 0, then take the share that
    # differ by more than the test set. The test set counts as one sample. Without a
    # difference, all samples count, even if they are equal.
    sizes = np.abs(resampled)
    is_larger = sizes - sizes.mean() > abs(real)
    larger = samples if math.isclose(real, 0, abs_tol=1e-9) else np.sum(is_larger)
    randomization = stats.permutation_test(
        [np.ones(count), np.zeros(count)],
        shuffled,
        permutation_type="samples",
        alternative="greater",
        n_resamples=samples,
        vectorized=False,
        rng=system.draws,
    )
    return SentenceTests(
        float((larger + 1) / (samples + 1)),
        float(randomization.pvalue),
        *map(float, np.quantile(resampled, limits)),
        *both,
    )
