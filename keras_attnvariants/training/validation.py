"""Validations: scores of a model's outputs for texts or recordings, and samples."""

import shutil
import sys
import time
from collections.abc import Callable
from collections.abc import Sequence

import keras
from rich.text import Text

from keras_attnvariants.data import Corpus
from keras_attnvariants.data import tasks
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.decoding import Translator
from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.utils.chunks import chunks

# Default number of sources that are scored, and the share of the time that translating
# them may take.
AFFORDABLE_SENTENCES = 200
AFFORDABLE_SHARE = 0.05
# Sentences that are translated before the next look at the clock.
CHUNK = 32

Translate = Callable[[list[str]], Sequence[str]]


class ValidationScore(keras.callbacks.Callback):
    """Scores a model on validation sources after each period, and logs `val_bleu`.

    Raw texts or recordings are translated to raw text, and scored by sacreBLEU by
    default. Another metric is logged under its name, such as `val_rouge1`.

    With a `share` it measures how long translating takes. A validation has no score if
    the translations so far and the next ones would take, or turn out to take, more than
    that share of the time so far.

    Args:
        translate: maps a list of source texts to their translations, for example
            `Translator.translate` of the model in training.
        sources: source texts.
        references: one reference for each.
        tokenize: sacreBLEU's tokenizer, `"13a"`, `"intl"`, `"ja-mecab"`, `"zh"`, ….
        share: share of the time that translating may take; `None` for no limit. Scores
            of only some validations do not choose the best model of a run.
        metric: name of the metric, see `keras_attnvariants.utils.metrics`.

    Attributes:
        name: name in the log.
        spent: seconds that translating has taken so far.

    Raises:
        ValueError: there are no texts, or not as many references as sources.
    """

    def __init__(
        self,
        translate: Translate,
        sources: Sequence[str],
        references: Sequence[str],
        tokenize: str = "13a",
        share: float | None = None,
        metric: str = "bleu",
    ) -> None:
        super().__init__()
        if not sources or len(sources) != len(references):
            raise ValueError(
                "`sources` and `references` must have the same length, at least 1. "
                f"Received: {len(sources)} sources, {len(references)} references"
            )
        self._translate = translate
        self._sources = list(sources)
        self._references = list(references)
        # Only scores need sacrebleu.
        from keras_attnvariants.utils.metrics import make_metric

        self._metric = make_metric(metric, tokenize)
        self.name = f"val_{metric}"
        self.share = share
        self._began = time.monotonic()
        self.spent = 0.0
        self._expected = 0.0  # seconds for all translations, as far as is known

    def score(self) -> float:
        """The score of the model as it is now."""
        return self._score_of(self._translate(self._sources))

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if logs is None:
            return
        # The callbacks that follow read it there, like the metrics of Keras.
        if self.share is None:
            logs[self.name] = self.score()
        elif (translations := self._affordable(self.share)) is not None:
            logs[self.name] = self._score_of(translations)

    def _affordable(self, share: float) -> list[str] | None:
        """The translations, if they stay within the share of the time."""
        start = time.monotonic()
        allowed = share * (start - self._began) - self.spent
        if self._expected > allowed:
            return None
        translations: list[str] = []
        for sources in chunks(self._sources, CHUNK):
            translations += self._translate(sources)
            seconds = time.monotonic() - start
            self._expected = seconds * len(self._sources) / len(translations)
            if seconds > allowed:
                break
        self.spent += seconds
        return translations if len(translations) == len(self._sources) else None

    def _score_of(self, translations: Sequence[str]) -> float:
        return self._metric.corpus_score(list(translations), [self._references]).score


def show_samples(
    translate: Translate,
    pairs: Sequence[tuple[str, str]],
    output: str = "translation",
) -> None:
    """Shows a model's outputs for a few sources on standard error.

    Args:
        translate: maps a list of sources to their outputs.
        pairs: pairs of a source and a reference.
        output: word for an output, see `Task`.
    """
    outputs = translate([source for source, _ in pairs])
    for (source, reference), found in zip(pairs, outputs, strict=True):
        names = ("source", output, "reference")
        for name, text in zip(names, (source, found, reference), strict=True):
            print_line(f"  {name:11}  {text}")


def print_line(line: str) -> None:
    """Prints a line on standard error, truncated to the width of a terminal.

    It uses no separate console, because a progress bar must know of lines above it.
    """
    text = Text(line)
    if sys.stderr.isatty():
        text.truncate(shutil.get_terminal_size().columns, overflow="ellipsis")
    print(text.plain, file=sys.stderr, flush=True)


def greedy_callbacks(
    model: keras.Model,
    tokenizer: Tokenizer,
    corpus: Corpus,
    score_sentences: int | None,
    samples: int,
    tokenize: str = "13a",
) -> list[keras.callbacks.Callback]:
    """Callbacks that decode validation sources greedily.

    Args:
        model, tokenizer: the model and its tokenizer.
        corpus: has the sentences in its split "validation".
        score_sentences: number of sources whose score chooses the best model; `None`
            for 200 where that costs little; their score chooses nothing.
        samples: number of sources whose outputs are shown.
        tokenize: as for `ValidationScore`.
    """
    task = tasks.get(corpus.task)
    pairs = list(zip(*corpus.read_lines("validation"), strict=True))
    count, share = score_sentences, None
    if count is None:
        count, share = AFFORDABLE_SENTENCES, AFFORDABLE_SHARE
    # By length: a chunk takes as long as its longest sentence.
    scored = sorted(pairs[:count], key=lambda pair: len(pair[0]))
    # From the start, the middle and the end.
    shown = pairs[:: -(-len(pairs) // samples)] if samples else []
    bounded = shown if share is None else scored + shown
    ids = tokenizer.encode([source for source, _ in bounded])
    longest = max(map(len, ids), default=1)
    positions = -(-longest // getattr(tokenizer, "source_stride", 1))
    # One shape of batches for all, compiled once.
    greedy = Translator(
        model,
        tokenizer,
        beam_size=1,
        batch_sizes=(max(1, samples) if share is None else CHUNK,),
        source_lengths=(min(positions, model.max_length),),
        xla=False,
    )
    callbacks: list[keras.callbacks.Callback] = []
    if scored:
        # Many sentences are translated in shapes that fit them.
        many = Translator(model, tokenizer, beam_size=1, xla=False)
        translate = (many if share is None else greedy).translate
        sources, references = zip(*scored, strict=True)
        score = ValidationScore(
            translate, sources, references, tokenize, share, task.metrics[0]
        )
        callbacks.append(score)
    if shown:

        def show(epoch: int, logs: Logs) -> None:
            show_samples(greedy.translate, shown, task.output)

        callbacks.append(keras.callbacks.LambdaCallback(on_epoch_end=show))
    return callbacks
