"""Significance of the difference between two systems; intervals of means."""

import math
import os
import statistics
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from typing import NamedTuple

from rich.table import Table
from rich.text import Text
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from keras_attnvariants.evaluation.metrics import METRICS
from keras_attnvariants.evaluation.metrics import References
from keras_attnvariants.evaluation.metrics import check_references
from keras_attnvariants.evaluation.metrics import check_texts
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer


@dataclass(frozen=True)
class Comparison:
    """One system under one metric, compared with the baseline.

    Attributes:
        system: name of the system.
        metric: name of the metric, such as `"BLEU"`.
        value: score on the test set.
        mean: mean score over the resampled test sets.
        interval: half the width of the 95 % confidence interval around `mean`.
        p_value: probability that chance alone makes a difference to the baseline of
            this size or more; `None` for the baseline, 1 for identical texts.
        signature: sacrebleu's signature of the settings.
    """

    system: str
    metric: str
    value: float
    mean: float
    interval: float
    p_value: float | None
    signature: str


class Mean(NamedTuple):
    """A mean and its interval; without a spread, these are `None`."""

    mean: float
    deviation: float | None
    low: float | None
    high: float | None


def paired_bootstrap(
    systems: Mapping[str, Sequence[str]],
    references: References,
    metrics: Sequence[str | Metric] = ("bleu", "chrf"),
    samples: int = 1000,
    seed: int = 12345,
) -> list[Comparison]:
    """Paired bootstrap resampling (Koehn 2004), by sacrebleu.

    The test set is drawn `samples` times, with replacement, and all systems
    are scored on the same draws.

    Args:
        systems: translations of the same test set by name; the first system is
            the baseline that the others are compared with.
        references: one reference per sentence, or several such sequences.
        metrics: `"bleu"`, `"chrf"`, `"ter"`, or sacrebleu's own metric objects.
        samples: number of resampled test sets.
        seed: positive seed of the resampling; equal seeds give equal figures.

    Returns:
        One `Comparison` per metric and system, in the order given.

    Raises:
        ValueError: there are fewer than two systems, a metric is unknown, numbers of
            sentences differ, or `samples` or `seed` is not positive.

    Example:

    >>> references = ["a b c d e", "f g h i j"] * 20
    >>> rows = paired_bootstrap(
    ...     {"base": ["a b c d x", "f g h i y"] * 20, "ours": references},
    ...     references,
    ...     metrics=["bleu"],
    ... )
    >>> [(row.system, round(row.value, 1)) for row in rows]
    [('base', 66.9), ('ours', 100.0)]
    """
    named = check_systems(systems)
    references = check_references(references, len(named[0][1]))
    check_integer("samples", samples)
    # With a seed of 0, sacrebleu draws one, and the figures could not be repeated.
    check_integer("seed", seed)
    chosen = {str(metric): make_metric(metric) for metric in metrics}
    with sacrebleu_seed(seed):
        test = PairedTest(named, chosen, references, "bs", n_samples=samples)
    signatures, columns = test()
    results: Mapping[str, Sequence[Any]] = columns
    rows = []
    for metric, signature in signatures.items():
        for (name, texts), result in zip(named, results[metric], strict=True):
            p_value = result.p_value
            if p_value is not None and texts == named[0][1]:
                # sacrebleu counts the samples that differ by more than the test set
                # does. For a copy of the baseline, there are none.
                p_value = 1.0
            figures = (float(result.score), float(result.mean), float(result.ci))
            rows.append(Comparison(name, metric, *figures, p_value, str(signature)))
    return rows


def comparison_table(rows: Sequence[Comparison]) -> Table:
    """The result of `paired_bootstrap` as a table for `rich.print`."""
    # `Text`, because rich would interpret square brackets as markup.
    table = Table("System", "Metric", title="Paired bootstrap", caption_justify="left")
    for heading in ("Score", "Mean and 95 % interval", "p"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            Text(row.system),
            row.metric,
            f"{row.value:.2f}",
            f"{row.mean:.2f} ± {row.interval:.2f}",
            "baseline" if row.p_value is None else f"{row.p_value:.4f}",
        )
    signatures = dict.fromkeys(f"{row.metric}|{row.signature}" for row in rows)
    table.caption = Text("\n".join(signatures))
    return table


def check_systems(
    systems: Mapping[str, Sequence[str]],
) -> list[tuple[str, Sequence[str]]]:
    """The systems as pairs of a name and a list of translations.

    Raises:
        ValueError: there are fewer than two, or they cannot be paired.
    """
    if not isinstance(systems, Mapping) or len(systems) < 2:
        names = list(systems) if isinstance(systems, Mapping) else systems
        raise ValueError(
            "`systems` must map the names of two or more systems to their "
            f"translations. Received: {type(systems).__name__} with {names}"
        )
    named: list[tuple[str, Sequence[str]]] = [
        (name, check_texts(f"systems[{name!r}]", texts))
        for name, texts in systems.items()
    ]
    counts = {name: len(texts) for name, texts in named}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"`systems` must translate the same sentences. Received: {counts}"
        )
    return named


def make_metric(metric: str | Metric) -> Metric:
    """The metric of this name; a metric of sacrebleu is returned as it is."""
    if isinstance(metric, Metric):
        return metric
    return METRICS[check_choice("metrics", metric, METRICS)]()


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


@contextmanager
def sacrebleu_seed(seed: int) -> Iterator[None]:
    """Sets the environment variable from which sacrebleu takes its seed."""
    before = os.environ.get("SACREBLEU_SEED")
    os.environ["SACREBLEU_SEED"] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SACREBLEU_SEED"]
        else:
            os.environ["SACREBLEU_SEED"] = before
