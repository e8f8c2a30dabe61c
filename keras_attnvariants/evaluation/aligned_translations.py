"""Translations with what they attend to, which show themselves in a notebook."""

import itertools
import time
from typing import NamedTuple

import keras

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding.texts import TextTasks
from keras_attnvariants.evaluation.alignment_html import CSS
from keras_attnvariants.evaluation.alignment_html import Hypothesis
from keras_attnvariants.evaluation.alignment_html import alignment_html
from keras_attnvariants.evaluation.alignment_html import alignment_svg
from keras_attnvariants.evaluation.alignment_html import spoken
from keras_attnvariants.evaluation.alignment_html import word_weights
from keras_attnvariants.evaluation.alignment_html import words
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.typing import Tensor

# Source tokens of the programs that are compiled; a longer sentence is cut.
LENGTHS = (16, 32, 64, 128, 256)
_numbers = itertools.count()


class AlignedTranslations(NamedTuple):
    """A sentence, its translations, what they attend to and how long they took.

    Attributes:
        source: the pieces of the sentence that the model read.
        hypotheses: best first; none for an empty sentence.
        seconds: for translating it, once the program for its length is compiled.
        is_cut: whether the model cannot read the whole sentence.
    """

    source: list[str]
    hypotheses: list[Hypothesis]
    seconds: float
    is_cut: bool

    @property
    def html(self) -> str:
        """Part of a page; see `alignment_html`, whose `CSS` the page needs."""
        name = f"kav{next(_numbers)}"
        return alignment_html(self.source, self.hypotheses, name)

    @property
    def told(self) -> list[str]:
        """Each word of the best translation, with what it attends to most."""
        there, here = words(self.source), words(self.hypotheses[0].pieces)
        weights = word_weights(self.hypotheses[0].weights, here, there)
        pairs = zip(here.texts, weights, strict=True)
        return [spoken(text, there.texts, row) for text, row in pairs]

    @property
    def svg(self) -> str:
        """A picture of the best translation; see `alignment_svg`."""
        return alignment_svg(self.source, self.hypotheses[0])

    def _repr_html_(self) -> str:
        return f"<style>{CSS}</style>{self.html}"


class AlignedTranslator(TextTasks):
    """Translates sentences one by one, and returns what the translations attend to.

    The weights are those of the highest cross-attention, the mean over its heads. In a
    notebook a result shows itself: who points at a word of a translation sees in the
    sentence what it attends to.

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
        """Translates a sentence."""
        [all_ids] = self.tokenizer.encode([text])
        ids = all_ids[: self.source_lengths[-1]]
        source = self.tokenizer.split([text])[0][: len(ids)]
        if not ids:
            return AlignedTranslations(source, [], 0.0, False)
        compiled = self.num_compilations
        hypotheses, seconds = self._search(ids)
        if self.num_compilations > compiled:
            hypotheses, seconds = self._search(ids)
        return AlignedTranslations(source, hypotheses, seconds, len(ids) < len(all_ids))

    def _search(self, ids: list[int]) -> tuple[list[Hypothesis], float]:
        """The translations of a sentence, and the seconds that they took."""

        def search(ids: Tensor) -> tuple[Tensor, ...]:
            found = beam_search(
                self.model,
                ids,
                beam_size=self.beam_size,
                n_best=self.n_best,
                return_alignments=True,
            )
            return found.ids, found.scores, found.lengths, found.alignments

        start = time.perf_counter()
        [(_, outputs)] = self._run("aligned", search, [[ids]])
        seconds = time.perf_counter() - start
        tokens, scores, lengths, weights = (values[0] for values in outputs)
        hypotheses = [
            Hypothesis(
                [self.pieces[i] for i in tokens[rank, : end - 1]],
                float(scores[rank]),
                weights[rank, : end - 1, : len(ids)],
            )
            for rank, end in enumerate(lengths)
            if end > 0
        ]
        return hypotheses, seconds
