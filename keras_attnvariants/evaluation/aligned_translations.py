"""Translations with their attention, for display in notebooks."""

import functools
import html
import itertools
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data.sentencepiece_models import SPACE
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding.step_model import source_positions
from keras_attnvariants.decoding.texts import TextTasks
from keras_attnvariants.models import SearchSettings

# Source positions of the programs that are compiled; a longer source is cut.
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
_numbers = itertools.count()

# Style sheet for pages that show `AlignedTranslations.html`.
CSS = Path(__file__).with_name("aligned.css").read_text("utf-8")


class Words(NamedTuple):
    """A sentence in words.

    Attributes:
        texts: the words, without spaces.
        spaced: whether a space comes before each.
        numbers: number of the word that each piece belongs to.
    """

    texts: list[str]
    spaced: list[bool]
    numbers: list[int]


class Hypothesis(NamedTuple):
    """A translation and what it attends to.

    Attributes:
        pieces: pieces of the translation, without the end of the sentence.
        score: its log probability after length normalization.
        weights: weights of its pieces on those of the source, `[T, S]`; zeros if the
            model has none.
    """

    pieces: Sequence[str]
    score: float
    weights: np.ndarray

    @property
    def text(self) -> str:
        """The translation."""
        return "".join(self.pieces).replace(SPACE, " ").strip()


class AlignedTranslations(NamedTuple):
    """A sentence, its translations, what they attend to and how long they took.

    Attributes:
        source: the pieces of the sentence that the model read.
        hypotheses: best first; none for an empty sentence.
        seconds: time to translate it, without compiling the program for its length.
        is_cut: whether the model cannot read the whole sentence.
    """

    source: list[str]
    hypotheses: list[Hypothesis]
    seconds: float
    is_cut: bool

    @property
    def html(self) -> str:
        """An HTML fragment; see `alignment_html`. The page needs `CSS`."""
        name = f"kav{next(_numbers)}"
        return alignment_html(self.source, self.hypotheses, name)

    @property
    def descriptions(self) -> list[str]:
        """Each word of the best translation, with what it attends to most.

        Empty for an empty sentence.
        """
        if not self.hypotheses:
            return []
        best = self.hypotheses[0]
        source_words, target_words = words(self.source), words(best.pieces)
        weights = word_weights(best.weights, target_words, source_words)
        pairs = zip(target_words.texts, weights, strict=True)
        return [spoken(text, source_words.texts, row) for text, row in pairs]

    def _repr_html_(self) -> str:
        return f"<style>{CSS}</style>{self.html}"


class AlignedTranslator(TextTasks):
    """Translates sentences one by one, and returns what the translations attend to.

    The weights are the mean over the heads of the highest cross-attention. A notebook
    shows a result as a table of the weights of the best translation; pointing at a word
    of any translation shows what it attends to.

    Args:
        model: a model that translates, such as a `Transformer`.
        tokenizer: its tokenizer.
        beam_size: beam size of the search; `None` for that of the model.
        n_best: translations of a sentence, at most the beam size.

    Example:

    ```python
    model, tokenizer = kav.load_model("runs/first/best")
    translator = kav.evaluation.AlignedTranslator(model, tokenizer)
    translator.translate("A small house.")
    ```
    """

    tokenizer: Tokenizer

    def __init__(
        self,
        model: keras.Model,
        tokenizer: Tokenizer,
        beam_size: int | None = None,
        n_best: int = 3,
    ) -> None:
        super().__init__(model, tokenizer, (1,), LENGTHS, xla=False)
        self.pieces = tokenizer.target.pieces
        self.beam_size = SearchSettings.of(model, beam_size=beam_size).beam_size
        self.n_best = min(n_best, self.beam_size)

    def translate(self, text: str) -> AlignedTranslations:
        """Translates a sentence, or another source such as a recording."""
        [all_ids] = self.tokenizer.encode([text])
        ids = all_ids[: self.source_lengths[-1] * self._stride]
        positions = source_positions(self.model, len(ids))
        source = self.tokenizer.split([text])[0][:positions]
        if not len(ids):
            return AlignedTranslations(source, [], 0.0, False)
        compiled = self.num_compilations
        hypotheses, seconds = self._search(ids)
        if self.num_compilations > compiled:
            hypotheses, seconds = self._search(ids)
        return AlignedTranslations(source, hypotheses, seconds, len(ids) < len(all_ids))

    def _search(self, ids: Sequence[int]) -> tuple[list[Hypothesis], float]:
        """The translations of a sentence, and the seconds that they took."""
        search = functools.partial(
            beam_search,
            self.model,
            beam_size=self.beam_size,
            n_best=self.n_best,
            return_alignments=True,
        )
        start = time.perf_counter()
        [(_, outputs)] = self._run("aligned", search, [[ids]])
        seconds = time.perf_counter() - start
        tokens, scores, _, lengths, weights = (values[0] for values in outputs)
        hypotheses = [
            Hypothesis(
                [self.pieces[i] for i in tokens[rank, : end - 1]],
                float(scores[rank]),
                weights[rank, : end - 1, : source_positions(self.model, len(ids))],
            )
            for rank, end in enumerate(lengths)
            if end > 0
        ]
        return hypotheses, seconds


def words(pieces: Sequence[str]) -> Words:
    """Joins pieces into words.

    A piece continues the previous word if letters or digits of an alphabet meet there.
    Punctuation marks and Chinese and Japanese characters are separate words.
    """
    texts: list[str] = []
    spaced: list[bool] = []
    numbers: list[int] = []
    for piece in pieces:
        text = piece.removeprefix(SPACE)
        begins = piece.startswith(SPACE) or not texts
        # A space that is a separate piece belongs to the word after it.
        meets = "" if begins else texts[-1][-1:]
        if begins or (meets and not (joins(meets) and joins(text[:1]))):
            texts.append("")
            spaced.append(piece.startswith(SPACE))
        texts[-1] += text.replace(SPACE, " ")
        numbers.append(len(texts) - 1)
    return Words(texts, spaced, numbers)


def joins(character: str) -> bool:
    """Whether a character may be joined to its neighbours in a word."""
    return character.isalnum() and unicodedata.east_asian_width(character) not in "WF"


def word_weights(weights: np.ndarray, target: Words, source: Words) -> np.ndarray:
    """Weights between words: means over the pieces of a target word, sums over those
    of a source word.

    Args:
        weights: between pieces, `[T, S]`.
        target, source: their words.

    Returns:
        `[target words, source words]`.
    """
    rows, columns = (np.eye(len(w.texts))[w.numbers] for w in (target, source))
    return rows.T @ weights @ columns / rows.sum(axis=0)[:, None]


def alignment_html(
    source: Sequence[str], hypotheses: Sequence[Hypothesis], name: str
) -> str:
    """A sentence, its translations, and what the best one attends to.

    Pointing at a word, or focusing it by keyboard, shades what it attends to in the
    source.

    The page needs `CSS`, but no script.

    Args:
        source: the pieces of the sentence.
        hypotheses: its translations, best first.
        name: a unique identifier on the page, of letters and digits.
    """
    source_words = words(source)
    rules, items, tables = [], [], []
    for number, hypothesis in enumerate(hypotheses):
        target_words = words(hypothesis.pieces)
        found = word_weights(hypothesis.weights, target_words, source_words)
        tables.append(weights_table(found, target_words, source_words))
        buttons = []
        for row, weights in enumerate(found):
            key, text = f"{number}-{row}", target_words.texts[row]
            rules += shades(f"#{name}", key, weights)
            label = html.escape(spoken(text, source_words.texts, weights))
            buttons.append(
                f'<button type="button" data-t="{key}" aria-label="{label}">'
                f"{html.escape(text)}</button>"
            )
        score = f'<span class="kav-score">{hypothesis.score:.2f}</span>'
        items.append(f"<li>{spaced(buttons, target_words)} {score}</li>")
    spans = [
        f'<span data-s="{column}">{html.escape(text)}</span>'
        for column, text in enumerate(source_words.texts)
    ]
    return (
        f'<div class="kav-aligned" id="{name}"><style>{"".join(rules)}</style>'
        f"<p>{spaced(spans, source_words)}</p><ol>{''.join(items)}</ol>"
        f"{''.join(tables[:1])}</div>"
    )


def weights_table(weights: np.ndarray, target: Words, source: Words) -> str:
    """Weights of words `[target, source]` as shaded cells that screen readers skip."""
    strongest = weights.max(initial=0.0)
    if not strongest > 0.0:
        return ""
    head = "".join(f"<th>{html.escape(text)}</th>" for text in source.texts)
    rows = []
    for text, row in zip(target.texts, weights, strict=True):
        cells = (
            f'<td style="--weight: {weight / strongest:.2f}" title="{weight:.0%}"></td>'
            for weight in row
        )
        rows.append(f"<tr><th>{html.escape(text)}</th>{''.join(cells)}</tr>")
    return (
        '<div class="kav-weights" aria-hidden="true"><table>'
        f"<thead><tr><th></th>{head}</tr></thead>{''.join(rows)}</table></div>"
    )


def shades(page: str, key: str, weights: np.ndarray) -> list[str]:
    """The rules that shade the words of the source while a target word is chosen."""
    chosen = f'{page}:has([data-t="{key}"]:is(:hover, :focus))'
    return [
        f'{chosen} [data-s="{column}"] {{ --weight: {share:.2f} }}\n'
        for column, share in enumerate(weights / (weights.max(initial=0.0) or 1.0))
        if share >= 0.05
    ]


def spoken(text: str, source: Sequence[str], weights: np.ndarray) -> str:
    """A target word with what it attends to most, for screen readers."""
    best = np.argsort(-weights, kind="stable")[:2]
    found = [f"{source[i]} {weights[i]:.0%}" for i in best if weights[i] > 0.0]
    return f"{text}: {', '.join(found)}" if found else text


def spaced(items: Sequence[str], words: Words) -> str:
    """Items in a row, with the spaces of the words that they stand for."""
    pairs = zip(items, words.spaced, strict=True)
    return "".join(f" {item}" if space else item for item, space in pairs).strip()
