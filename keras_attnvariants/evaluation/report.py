"""All that a test set tells about a system, in one report."""

import json
import os
import platform
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import sacrebleu
from rich.console import Group
from rich.table import Table
from rich.text import Text

from keras_attnvariants.evaluation.metrics import References
from keras_attnvariants.evaluation.metrics import Score
from keras_attnvariants.evaluation.metrics import check_references
from keras_attnvariants.evaluation.metrics import check_texts
from keras_attnvariants.evaluation.metrics import corpus_bleu
from keras_attnvariants.evaluation.metrics import corpus_chrf
from keras_attnvariants.evaluation.metrics import corpus_ter
from keras_attnvariants.evaluation.parameters import ParameterSummary
from keras_attnvariants.evaluation.parameters import parameter_summary
from keras_attnvariants.evaluation.speed import Speed
from keras_attnvariants.evaluation.speed import measure_speed


@dataclass(frozen=True)
class Report:
    """Quality, speed and size of a system on one test set.

    Attributes:
        scores: BLEU, chrF and TER.
        speed: of the translation, on the machine described by `environment`.
        parameters: of the model, if it was given.
        environment: versions and machine.
    """

    scores: tuple[Score, ...]
    speed: Speed
    parameters: ParameterSummary | None
    environment: dict[str, str | int]

    @property
    def translations(self) -> list[str]:
        """What was scored, one string per source."""
        return self.speed.translations

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold; without the translations."""
        return {
            "scores": {score.name: asdict(score) for score in self.scores},
            "speed": self.speed.to_dict(),
            "parameters": self.parameters and self.parameters.to_dict(),
            "environment": self.environment,
        }

    def write(self, path: str | os.PathLike) -> Path:
        """Writes the report as JSON and returns the path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        return path

    def __rich__(self) -> Group:
        quality = Table("Metric", title=f"Quality on {self.speed.sentences} sentences")
        quality.add_column("Score", justify="right")
        quality.add_column("Signature", overflow="fold")
        for score in self.scores:
            # Text, because rich would read square brackets as markup.
            quality.add_row(score.name, f"{score.value:.2f}", Text(score.signature))
        parts = [quality, self.speed, self.parameters]
        return Group(*(part for part in parts if part is not None))


def evaluate(
    translate: Callable[[list[str]], list[str]],
    sources: Sequence[str],
    references: References,
    model: keras.Model | None = None,
    runs: int = 1,
    count_tokens: Callable[[str], int] | None = None,
    tokenize: str = "13a",
) -> Report:
    """Translates a test set and reports quality, speed and size.

    Args:
        translate: takes a list of strings, returns one string for each; such as
            `Translator.translate`.
        sources: the sentences to translate.
        references: one reference per source, or several such sequences.
        model: its parameters are counted too.
        runs: number of timed translations of the whole test set, after the one
            that is scored.
        count_tokens: number of tokens of one translation, for the speed; `None`
            counts what white space separates.
        tokenize: tokenisation of BLEU; for Chinese `"zh"`, for Japanese `"char"`,
            or `"ja-mecab"` where sacrebleu has MeCab.

    Returns:
        A `Report`; `rich.print` shows it, `write` stores it as JSON.

    Raises:
        ValueError: there is nothing to translate, counts differ, or something
            other than strings was given or came back.

    Example:

    >>> report = evaluate(lambda texts: texts, ["a b c d"], ["a b c d"])
    >>> [(score.name, round(score.value)) for score in report.scores]
    [('BLEU', 100), ('chrF2', 100), ('TER', 0)]
    """
    sources = check_texts("sources", sources)
    # Found out now, not after an hour of translation.
    check_references(references, len(sources))
    speed = measure_speed(translate, sources, runs, count_tokens)
    scores = (
        corpus_bleu(speed.translations, references, tokenize=tokenize),
        corpus_chrf(speed.translations, references),
        corpus_ter(speed.translations, references),
    )
    parameters = None if model is None else parameter_summary(model)
    return Report(scores, speed, parameters, environment())


def environment() -> dict[str, str | int]:
    """Versions and machine, without which no speed means anything."""
    return {
        "python": platform.python_version(),
        "keras": keras.__version__,
        "backend": keras.backend.backend(),
        "sacrebleu": sacrebleu.__version__,
        "machine": platform.machine(),
        "processors": os.cpu_count() or 1,
        "devices": ", ".join(keras.distribution.list_devices()),
    }
