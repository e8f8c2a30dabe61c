"""Translations at each validation that are for people to read, and decide nothing."""

import shutil
import sys
from collections.abc import Callable
from collections.abc import Sequence

import keras
from rich.text import Text

from keras_attnvariants.data import Corpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.decoding import Translator
from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.validation import AffordableBLEU

# Sentences whose BLEU is reported unless another number is asked for.
AFFORDABLE_SENTENCES = 200


class SampleTranslations(keras.callbacks.Callback):
    """Shows on standard error how the model translates a few sentences.

    Args:
        translate: maps a list of source texts to their translations.
        sources: source texts.
        references: one reference translation of each.
    """

    def __init__(
        self,
        translate: Callable[[list[str]], Sequence[str]],
        sources: Sequence[str],
        references: Sequence[str],
    ) -> None:
        super().__init__()
        self._translate = translate
        self._sources = list(sources)
        self._references = list(references)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        translations = self._translate(self._sources)
        for source, translation, reference in zip(
            self._sources, translations, self._references, strict=True
        ):
            print_line(f"  source       {source}")
            print_line(f"  translation  {translation}")
            print_line(f"  reference    {reference}")


def print_line(line: str) -> None:
    """Prints a line on standard error: as much as fits on a terminal, all elsewhere.

    Not by a console of its own: a progress bar has to know what goes above it.
    """
    text = Text(line)
    if sys.stderr.isatty():
        text.truncate(shutil.get_terminal_size().columns, overflow="ellipsis")
    print(text.plain, file=sys.stderr, flush=True)


def translations_to_read(
    model: keras.Model,
    tokenizer: Tokenizer,
    corpus: Corpus,
    bleu_sentences: int | None,
    samples: int,
) -> list[keras.callbacks.Callback]:
    """Callbacks that translate validation sentences, greedily.

    Args:
        model, tokenizer: what translates.
        corpus: has the sentences in its split "validation", if it has one.
        bleu_sentences: `None` for the BLEU of 200 sentences where that costs little.
        samples: number of sentences whose translations are shown.
    """
    if "validation" not in corpus.splits:
        return []
    pairs = list(zip(*corpus.read_lines("validation"), strict=True))
    to_score = pairs[: AFFORDABLE_SENTENCES if bleu_sentences is None else 0]
    # From the start, the middle and the end.
    to_show = pairs[:: -(-len(pairs) // samples)] if samples else []
    ids = tokenizer.encode([source for source, _ in to_score + to_show])
    # One shape of batches for all, compiled once.
    greedy = Translator(
        model,
        tokenizer,
        beam_size=1,
        batch_sizes=(AffordableBLEU.CHUNK if to_score else max(1, samples),),
        source_lengths=(min(max(map(len, ids), default=1), model.max_length),),
        xla=False,
    )
    callbacks: list[keras.callbacks.Callback] = []
    if to_score:
        callbacks.append(AffordableBLEU(greedy.translate, *columns(to_score)))
    if to_show:
        callbacks.append(SampleTranslations(greedy.translate, *columns(to_show)))
    return callbacks


def columns(pairs: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The sources and the references of pairs."""
    return [source for source, _ in pairs], [reference for _, reference in pairs]
