"""Scores of all systems on all test sets, and their differences to the baseline."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from sacrebleu.metrics.base import Metric

from keras_attnvariants.evaluation.metrics import METRICS
from keras_attnvariants.evaluation.significance import mean_interval
from keras_attnvariants.experiments.results import Difference
from keras_attnvariants.experiments.results import ScoreSummary
from keras_attnvariants.experiments.significance import Translations
from keras_attnvariants.experiments.significance import holm
from keras_attnvariants.experiments.significance import seed_tests
from keras_attnvariants.experiments.significance import sentence_tests
from keras_attnvariants.utils.checks import check_choice

# Translations by name of the system, and by seed.
Texts = Mapping[str, Mapping[int, Sequence[str]]]

# The p-values that are corrected for the number of systems.
TESTS = ("welch", "paired", "bootstrap", "randomization")


def score_test_set(
    test_set: str,
    texts: Texts,
    references: Sequence[str],
    baseline: str,
    *,
    metrics: Sequence[str] = tuple(METRICS),
    tokenize: str = "13a",
    samples: int = 1000,
    confidence: float = 0.95,
) -> tuple[list[ScoreSummary], list[Difference]]:
    """Scores of the systems on a test set, and tests against the baseline.

    Args:
        test_set: its name.
        texts: translations by system and seed.
        references: one of each sentence.
        baseline: name of the system that the others are compared with. Without it
            among the texts there are no differences.
        metrics: `"bleu"`, `"chrf"` and `"ter"`.
        tokenize: sacrebleu's tokenizer for BLEU.
        samples: number of resampled test sets.
        confidence: of all intervals.

    Returns:
        Scores and differences, by metric and system.
    """
    summaries: list[ScoreSummary] = []
    differences: list[Difference] = []
    for name in metrics:
        metric = make_metric(name, tokenize)
        found = {
            system: Translations.of(metric, list(by_seed.values()), references)
            for system, by_seed in texts.items()
        }
        label = metric.corpus_score([references[0]], [[references[0]]]).name
        values = {
            system: dict(zip(texts[system], found[system].scores(), strict=True))
            for system in found
        }
        for system, by_seed in values.items():
            summaries.append(
                ScoreSummary(
                    system,
                    test_set,
                    label,
                    tuple(by_seed),
                    tuple(by_seed.values()),
                    *mean_interval(list(by_seed.values()), confidence),
                    signature=str(metric.get_signature()),
                )
            )
        if baseline in found:
            rows = compare(found, values, texts, baseline, samples, confidence)
            differences += corrected(test_set, label, list(rows))
    return summaries, differences


def make_metric(name: str, tokenize: str) -> Metric:
    """The metric of this name."""
    check_choice("metric", name, METRICS)
    return METRICS[name](**({"tokenize": tokenize} if name == "bleu" else {}))


def compare(
    found: Mapping[str, Translations],
    values: Mapping[str, Mapping[int, float]],
    texts: Texts,
    baseline: str,
    samples: int,
    confidence: float,
) -> Iterator[tuple[str, dict[str, float | None]]]:
    """Names of the systems, and fields of `Difference` before the correction."""
    for system in found:
        if system == baseline:
            continue
        over_seeds = seed_tests(values[system], values[baseline], confidence)
        first, second = same_seeds(found, texts, system, baseline)
        over_sentences = sentence_tests(first, second, samples, confidence)
        means = [mean_interval(list(values[n].values()))[0] for n in (system, baseline)]
        yield (
            system,
            {
                "difference": means[0] - means[1],
                **over_seeds._asdict(),
                **over_sentences._asdict(),
            },
        )


def same_seeds(
    found: Mapping[str, Translations], texts: Texts, *systems: str
) -> list[Translations]:
    """The systems with the runs of seeds that all have; without any, the first run."""
    common = set.intersection(*(set(texts[system]) for system in systems))
    chosen = []
    for system in systems:
        numbers = [i for i, seed in enumerate(texts[system]) if seed in common]
        metric, statistics = found[system]
        chosen.append(Translations(metric, statistics[numbers or [0]]))
    return chosen


def corrected(
    test_set: str, metric: str, rows: Sequence[tuple[str, dict[str, float | None]]]
) -> list[Difference]:
    """The differences with p-values corrected for the number of systems."""
    columns = {test: holm([row[test] for _, row in rows]) for test in TESTS}
    return [
        Difference(
            system=system,
            test_set=test_set,
            metric=metric,
            **row,  # type: ignore[arg-type]
            **{f"{test}_holm": columns[test][i] for test in TESTS},  # type: ignore[arg-type]
        )
        for i, (system, row) in enumerate(rows)
    ]
