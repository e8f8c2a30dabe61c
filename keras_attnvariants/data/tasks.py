"""Tasks: what a model reads, how it is measured, and what it is trained with.

Commands, training, tuning and comparisons know a task only through this module. Models
and presets carry the name of their task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_attnvariants.data.audio import AudioTokenizer
from keras_attnvariants.data.sources import recordings
from keras_attnvariants.data.sources import summaries
from keras_attnvariants.data.splits import Conversion
from keras_attnvariants.data.splits import check_languages
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.utils.checks import check_choice

DEFAULT = "translation"
# The ending of lists of recordings.
AUDIO = "audio"
# Metrics of which less is better.
LOWER_IS_BETTER = ("loss", "ter", "wer", "cer")


def text_tokenizer(subwords: Tokenizer) -> Tokenizer:
    """The tokenizer itself, or the target tokenizer of one for recordings."""
    return subwords if subwords.reads == "text" else subwords.target


@dataclass(frozen=True)
class Task:
    """A sequence-to-sequence task.

    Attributes:
        name: its name.
        preset: name of the default preset for training.
        metrics: names of its scores, see `keras_attnvariants.utils.metrics`; the
            first one chooses models.
        languages: endings of the files of its corpora; `None` if the user names
            languages.
        reads_text: whether sources are texts, from which subwords are learned.
        max_characters: longest line of a source or target.
        max_length: longest source or target in training, in positions.
        cuts_sources: whether longer sources are truncated in training, not left out.
        at_once: maximum number of sources that commands hold in memory.
        source, output: words for a source and for the output of a model.
        use: the command that uses a model, and an example of a source.
        baselines: names of baselines that are scored beside models, see
            `keras_attnvariants.evaluation.baselines`.
        picture: name of the picture of a model's attention, see
            `keras_attnvariants.evaluation.attention_pictures`.
        tokenizer: makes the tokenizer of both sides from one for subwords. It accepts
            its own result, too.
        conversion: returns the `Conversion` of the corpus at a path; `None` for
            parallel files, or a table of them.
    """

    name: str
    preset: str
    metrics: tuple[str, ...]
    languages: tuple[str, str] | None = None
    reads_text: bool = True
    max_characters: int = 2000
    max_length: int = 256
    cuts_sources: bool = False
    at_once: int = 1024
    source: str = "sentence"
    output: str = "translation"
    use: tuple[str, str] = ("translate", "A sentence.")
    baselines: tuple[str, ...] = ()
    picture: str = "heads"
    tokenizer: Callable[[Any], Any] = text_tokenizer
    conversion: Callable[[Path], Conversion | None] = lambda path: None

    def sides(self, source: str | None, target: str | None) -> tuple[str, str]:
        """The endings of the files of a corpus: those given, else those of the task.

        Raises:
            ValueError: one is missing, is not a code, or both are the same; or they are
                recordings where the task has texts, or texts where it has recordings.
        """
        own = self.languages or (None, None)
        sides = check_languages(source or own[0], target or own[1])
        if (sides[0] == AUDIO) == self.reads_text or sides[1] == AUDIO:
            raise ValueError(
                f"`source_language` must be {AUDIO!r} for the task 'speech', and for "
                "no other task. "
                f"Received: {sides[0]!r} to {sides[1]!r} for {self.name!r}"
            )
        return sides

    @property
    def reads(self) -> str:
        """A word for sources: texts or recordings."""
        return "texts" if self.reads_text else "recordings"

    def check(self, subject: Any, name: str) -> None:
        """Raises unless a model, or the models of a preset, can read the sources.

        Args:
            subject: the model or the preset.
            name: what messages call it.

        Raises:
            ValueError: one has texts and the other recordings.
        """
        other = task_of(subject)
        if other.reads_text != self.reads_text:
            raise ValueError(
                f"The task {self.name!r} has {self.reads}, and models of the task "
                f"{other.name!r} read {other.reads}. Received: {name}"
            )


TASKS = {
    task.name: task
    for task in (
        Task(DEFAULT, "kav/hc-sa/bible", ("bleu", "chrf", "ter")),
        Task(
            name="summarisation",
            preset="kav/base/scitldr",
            metrics=("rouge1", "rouge2", "rougeL"),
            languages=("source", "target"),
            max_characters=100_000,
            max_length=1024,
            cuts_sources=True,
            source="document",
            output="summary",
            use=("translate", "A document."),
            baselines=("lead-1", "oracle"),
            picture="document",
            conversion=summaries.conversion,
        ),
        Task(
            name="speech",
            preset="kav/base/digits",
            metrics=("wer", "cer"),
            languages=(AUDIO, "text"),
            reads_text=False,
            max_length=1024,
            at_once=64,
            source="recording",
            output="transcript",
            use=("transcribe", "FILE.wav"),
            picture="spectrogram",
            tokenizer=AudioTokenizer,
            conversion=recordings.conversion,
        ),
    )
}


def of_command(command: str) -> Task:
    """The first task whose models a command uses, such as `"transcribe"`."""
    return next(task for task in TASKS.values() if task.use[0] == command)


def command_for(reads_text: bool) -> str:
    """The command that uses models of texts, or of recordings."""
    return next(t.use[0] for t in TASKS.values() if t.reads_text == reads_text)


def get(name: str) -> Task:
    """The task of this name.

    Raises:
        ValueError: there is none.
    """
    return TASKS[check_choice("task", name, TASKS)]


def monitors() -> list[str]:
    """The entries of a log that choose models: the first metric of tasks, or loss."""
    return [f"val_{task.metrics[0]}" for task in TASKS.values()] + ["val_loss"]


def higher_is_better(metric: str) -> bool:
    """Whether higher values of a metric are better; its name may begin with `val_`."""
    return metric.removeprefix("val_") not in LOWER_IS_BETTER


def task_of(model: Any) -> Task:
    """The task of a model or a preset; one that names none translates."""
    return get(getattr(model, "task", DEFAULT))
