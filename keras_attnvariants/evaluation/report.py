"""Quality, speed and size of a system, in one report."""

import os
import platform
import time
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from statistics import median
from typing import Any

import keras
from rich.console import Group
from rich.jupyter import JupyterMixin
from rich.table import Table
from rich.text import Text

from keras_attnvariants.data.tasks import task_of
from keras_attnvariants.decoding import Translator
from keras_attnvariants.evaluation.metrics import References
from keras_attnvariants.evaluation.metrics import Score
from keras_attnvariants.evaluation.metrics import check_references
from keras_attnvariants.evaluation.metrics import check_texts
from keras_attnvariants.evaluation.metrics import check_tokenizer
from keras_attnvariants.evaluation.metrics import corpus_score
from keras_attnvariants.evaluation.parameters import ParameterSummary
from keras_attnvariants.evaluation.parameters import parameter_summary
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.machine import hardware
from keras_attnvariants.utils.machine import versions
from keras_attnvariants.utils.metrics import make_metric

Translate = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Speed(JupyterMixin):
    """Speed of a system.

    Attributes:
        sentences: number of sources in one run.
        tokens: number of words in the outputs, separated by white space.
        seconds: duration of each timed run.
        warm_up_seconds: duration of the run before them, which includes compilation.
        hypotheses: the output of that run.
    """

    sentences: int
    tokens: int
    seconds: tuple[float, ...]
    warm_up_seconds: float
    hypotheses: list[str] = field(repr=False)

    @property
    def sentences_per_second(self) -> float:
        """Sentences per second at the median duration."""
        return self.sentences / median(self.seconds)

    @property
    def tokens_per_second(self) -> float:
        """Output tokens per second at the median duration."""
        return self.tokens / median(self.seconds)

    def to_dict(self) -> dict[str, float | list[float]]:
        """A JSON-able dict, without the hypotheses."""
        names = ("sentences_per_second", "tokens_per_second", "sentences", "tokens")
        return {
            **{name: getattr(self, name) for name in names},
            "seconds": list(self.seconds),
            "warm_up_seconds": self.warm_up_seconds,
        }

    def __rich__(self) -> Table:
        runs = f"median of {len(self.seconds)}, warm-up {self.warm_up_seconds:.2f} s"
        table = Table("Speed", runs)
        table.columns[1].justify = "right"
        table.add_row("sources / s", f"{self.sentences_per_second:,.1f}")
        table.add_row("tokens / s", f"{self.tokens_per_second:,.1f}")
        return table


@dataclass(frozen=True)
class Report(JupyterMixin):
    """Quality, speed and size of a system on one test set.

    Attributes:
        scores: those of the task, each with its signature.
        hypotheses: the scored texts, one string per source.
        speed: its speed, if it was measured, on the machine described by
            `environment`.
        parameters: parameters of the model, if it was given.
        environment: versions of the software, and the machine.
    """

    scores: tuple[Score, ...]
    hypotheses: list[str] = field(repr=False)
    speed: Speed | None
    parameters: ParameterSummary | None
    environment: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able dict, without the hypotheses."""
        return {
            "sentences": len(self.hypotheses),
            "scores": {score.name: asdict(score) for score in self.scores},
            "speed": self.speed and self.speed.to_dict(),
            "parameters": self.parameters and self.parameters.to_dict(),
            "environment": self.environment,
        }

    def __rich__(self) -> Group:
        table = Table("Metric", title=f"Quality on {len(self.hypotheses)} sources")
        table.add_column("Score", justify="right")
        table.add_column("Signature", overflow="fold")
        for score in self.scores:
            # `Text`, because rich would interpret square brackets as markup.
            table.add_row(score.name, score.shown, Text(score.signature))
        parts = table, self.speed, self.parameters
        return Group(*(part for part in parts if part is not None))


def measure_speed(
    translate: Translate,
    texts: Sequence[str],
    runs: int = 3,
) -> Speed:
    """Times a function that translates, summarises or transcribes.

    Args:
        translate: takes a list of strings and returns one string for each.
        texts: its sources: texts, or paths of recordings.
        runs: number of timed runs; one more run precedes them as a warm-up.

    Returns:
        A `Speed`, shown as a table by `rich.print`.

    Raises:
        ValueError: `texts` is empty or not a sequence of strings, `runs` is not
            positive, or `translate` does not return one string per text.

    Example:

    >>> speed = measure_speed(lambda texts: [text.upper() for text in texts], ["a b"])
    >>> speed.hypotheses, speed.tokens
    (['A B'], 2)
    """
    texts = check_texts("texts", texts)
    check_integer("runs", runs)
    warm_up, hypotheses = timed(translate, texts)
    seconds = tuple(timed(translate, texts)[0] for _ in range(runs))
    tokens = sum(len(text.split()) for text in hypotheses)
    return Speed(len(texts), tokens, seconds, warm_up, hypotheses)


def timed(translate: Translate, texts: list[str]) -> tuple[float, list[str]]:
    """The seconds that a function took, and its hypotheses.

    Raises:
        ValueError: there is not one string per text.
    """
    start = time.perf_counter()
    hypotheses = translate(texts)
    seconds = time.perf_counter() - start
    hypotheses = check_texts("translate(texts)", hypotheses)
    if len(hypotheses) != len(texts):
        raise ValueError(
            f"`translate` must return one string per text. "
            f"Received: {len(hypotheses)} strings for {len(texts)} texts"
        )
    return seconds, hypotheses


def evaluate(
    system: Translate | str | os.PathLike[str],
    sources: Sequence[str],
    references: References,
    *,
    model: keras.Model | None = None,
    metrics: Sequence[str] | None = None,
    tokenize: str = "13a",
    samples: int = 0,
    groups: Sequence[str] | None = None,
    speed_runs: int = 0,
) -> Report:
    """Runs a system on a test set: reports quality, and optionally speed and size.

    Args:
        system: function that takes a list of strings and returns one string for
            each, such as a `Translator`; or a model folder with a tokenizer, or the
            name of a trained model, which decodes with its own settings.
        sources: sentences or documents; for models of speech, paths of recordings.
        references: one reference per source, or several such sequences.
        model: model whose parameters are reported; not needed for a model folder.
        metrics: names of scores, see `keras_attnvariants.utils.metrics`; by default
            those of the model's task; for a function BLEU, chrF and TER.
        samples: number of resampled test sets, which give scores an interval.
        groups: one for each source, such as its speaker; whole groups are resampled.
        tokenize: sacrebleu's tokenizer for BLEU: `"zh"` for Chinese, `"char"` or
            `"ja-mecab"` for Japanese, …
        speed_runs: number of times that the test set is run again to measure the
            speed, after the run that is scored; 0 for no measurement.

    Returns:
        A `Report`; `rich.print` shows it, and `to_dict` gives what JSON can hold.

    Raises:
        ValueError: there is no source, the numbers of sources and
            references differ, `system` does not return one string per source, the
            folder has no tokenizer, or sacrebleu does not know `tokenize`.
        FileNotFoundError: there is no such model folder.

    Example:

    >>> report = evaluate(lambda texts: texts, ["a b c d"], ["a b c d"])
    >>> [(score.name, round(score.value)) for score in report.scores]
    [('BLEU', 100), ('chrF2', 100), ('TER', 0)]
    """
    sources = check_texts("sources", sources)
    # Before the decoding, which may take an hour.
    check_references(references, len(sources))
    check_integer("speed_runs", speed_runs, minimum=0)
    check_tokenizer(tokenize)
    if not callable(system):
        system = Translator.from_preset(system)
        model = system.model
    names = metrics or task_of(getattr(system, "model", model)).metrics
    measures = [make_metric(name, tokenize) for name in names]
    speed = measure_speed(system, sources, speed_runs) if speed_runs else None
    hypotheses = speed.hypotheses if speed else timed(system, sources)[1]
    scores = tuple(
        corpus_score(measure, hypotheses, references, samples, groups)
        for measure in measures
    )
    parameters = None if model is None else parameter_summary(model)
    return Report(scores, hypotheses, speed, parameters, environment())


def environment() -> dict[str, str]:
    """Versions of the software, and the machine."""
    return {
        "python": platform.python_version(),
        **versions(("keras", "sacrebleu")),
        "backend": keras.backend.backend(),
        **hardware(),
    }
