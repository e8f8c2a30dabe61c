"""Translation of lists of texts, in few compiled shapes."""

import functools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attnvariants.decoding.beam_search import beam_search
from keras_attnvariants.decoding.options import check_lengths
from keras_attnvariants.decoding.options import check_sampling
from keras_attnvariants.decoding.sampling import sample
from keras_attnvariants.decoding.scoring import TokenScores
from keras_attnvariants.decoding.scoring import score_tokens
from keras_attnvariants.decoding.staged_search import Hypotheses
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.texts import TextTasks
from keras_attnvariants.decoding.texts import TextTokenizer
from keras_attnvariants.decoding.texts import Translation
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import seeds_of_texts
from keras_attnvariants.utils.typing import Tensor


class Translator(TextTasks):
    """Translates lists of texts with a model and its tokenizer.

    Texts are tokenized, sorted by length and packed into batches of the shapes
    `batch_sizes` x `source_lengths`. The search is compiled once for each shape that
    occurs, at most `len(batch_sizes) * len(source_lengths)` times. Without XLA, a Keras
    model on TensorFlow needs no fixed shapes: batches have up to the largest of
    `batch_sizes`, no padding beyond their longest text, and the search is compiled
    once. Translations are in the order of the texts, and do not depend on the texts
    around them. A text that is empty or white space has the empty translation, without
    running the model. A text of more tokens than the largest of `source_lengths` is
    truncated, with a warning the first time.

    Args:
        model: a step model, see `keras_attnvariants.decoding.StepModel`. Its current
            weights are used, even if they change after compilation.
        tokenizer: an object with `encode` and `decode`, see `TextTokenizer`.
        beam_size: number of live hypotheses; 1 is greedy search.
        length_penalty: exponent of the length normalization. By default, this,
            `beam_size`, `min_length` and `no_repeat_ngram` are those of the model's
            `search_settings`.
        min_length: minimum number of target tokens before EOS.
        max_length: maximum number of target tokens with EOS. By default the source
            length plus the model's `extra_length`, at most `model.max_length`.
        block_unknown: whether to forbid UNK in translations.
        batch_sizes: numbers of sentences in a batch.
        source_lengths: numbers of source tokens, at most `model.max_length` each.
        xla: on TensorFlow, whether XLA compiles the search; `None` to let
            `keras_attnvariants.backend.gains_from_xla` decide.
        no_repeat_ngram: no `n` tokens in a row occur twice in a translation; 0 for no
            limit.

    Attributes:
        num_compilations: number of compilations of a search or a scoring so far.
        num_truncated: number of texts truncated so far.

    Raises:
        ValueError: an option is out of range.

    Example:
        >>> import keras_attnvariants as kav
        >>> texts = ["ein kleines Haus", "a small house", "a house", "ein Haus"]
        >>> tokenizer = kav.Tokenizer.train(texts, vocabulary_size=20)
        >>> attention = kav.DotProductAttention(num_heads=2)
        >>> model = kav.Transformer(20, 1, 8, 16, attention, attention, attention)
        >>> translator = kav.Translator(model, tokenizer, max_length=9)
        >>> english = translator.translate(["ein Haus", "", "ein kleines Haus"])
        >>> len(english), english[1], translator.num_compilations
        (3, '', 1)
    """

    def __init__(
        self,
        model: StepModel,
        tokenizer: TextTokenizer,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        block_unknown: bool = False,
        batch_sizes: Sequence[int] = (1, 8, 32),
        source_lengths: Sequence[int] = (16, 32, 64, 128, 256, 512, 1024),
        xla: bool | None = None,
        no_repeat_ngram: int | None = None,
    ) -> None:
        super().__init__(model, tokenizer, batch_sizes, source_lengths, xla)
        settings = SearchSettings.of(
            model, beam_size=beam_size, length_penalty=length_penalty
        )
        check_lengths(min_length or 0, max_length, model.max_length)
        check_integer("no_repeat_ngram", no_repeat_ngram or 0, minimum=0)
        self.beam_size = settings.beam_size
        self._options: dict[str, Any] = {
            "length_penalty": settings.length_penalty,
            "min_length": min_length,
            "max_length": max_length,
            "block_unknown": block_unknown,
            "no_repeat_ngram": no_repeat_ngram,
        }

    @classmethod
    def from_preset(cls, name: str | os.PathLike[str], **options: Any) -> "Translator":
        """A translator with a trained model, such as one that the package contains.

        Args:
            name: a name that `kav models` lists, a folder or an address on a hub; see
                `keras_attnvariants.load_model`, which loads the model.
            **options: options of the constructor. XLA does not compile the search
                unless `xla=True` is given: for a few texts, compiling takes longer than
                it saves.

        Raises:
            FileNotFoundError: there is no such model.
            ValueError: the model is damaged, has no tokenizer, or does not translate;
                or an option is out of range.

        Example:

        ```python
        translator = kav.Translator.from_preset("kav/hc-sa/tatoeba-en-de")
        translator(["Where is the station?"])
        ```
        """
        # Imported here: the modules of models and decoding do not read model folders.
        import keras_attnvariants as kav

        model, tokenizer = kav.load_model(name)
        if tokenizer is None or not hasattr(model, "initial_state"):
            raise ValueError(
                "`name` must be that of a model that translates, with its tokenizer. "
                f"Received: {os.fspath(name)!r}"
            )
        return cls(model, tokenizer, **{"xla": False, **options})

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The best translation of each text; see `translate`."""
        return self.translate(texts)

    def translate(self, texts: Sequence[str]) -> list[str]:
        """The best translation of each text.

        Raises:
            TypeError: `texts` is not a sequence of strings.
        """
        return [best.text for [best] in self.translate_nbest(texts, n_best=1)]

    def translate_nbest(
        self,
        texts: Sequence[str],
        n_best: int | None = None,
        token_scores: bool = False,
    ) -> list[list[Translation]]:
        """The best translations of each text, best first.

        Each new value of `n_best` or `token_scores` is compiled.

        Args:
            texts: the source texts.
            n_best: number of translations; by default `beam_size`.
            token_scores: whether to return tokens and their log probabilities.

        Returns:
            A list of `Translation` per text, shorter than `n_best` if the search found
            fewer. Two of them may have the same text, from different tokens.

        Raises:
            TypeError: `texts` is not a sequence of strings.
            ValueError: `n_best` is not a positive integer.
        """
        n_best = self.beam_size if n_best is None else n_best
        check_integer("n_best", n_best)

        def search(ids: Tensor) -> Hypotheses:
            return beam_search(
                self.model,
                ids,
                beam_size=self.beam_size,
                n_best=n_best,
                return_token_log_probs=token_scores,
                **self._options,
            )

        task = ("search", n_best, token_scores)
        return self._translations(task, search, self._encode("texts", texts))

    def sample(
        self,
        texts: Sequence[str],
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int | Sequence[int] = 0,
    ) -> list[Translation]:
        """A translation of each text, drawn at random; see `decoding.sample`.

        Each new value of `temperature`, `top_k` or `top_p` is compiled.

        Args:
            texts: the source texts.
            temperature, top_k, top_p: as for `decoding.sample`.
            seed: one for each text, or one for all, from which each text gets its own
                by its place. With one seed per text, a translation does not depend on
                the other texts.

        Returns:
            A `Translation` per text, with its tokens and their log probabilities.

        Raises:
            TypeError: `texts` is not a sequence of strings.
            ValueError: an option is out of range.
        """
        check_sampling(temperature, top_k, top_p, seed)
        sources = self._encode("texts", texts)
        seeds = seeds_of_texts(seed, len(sources))

        def draw(ids: Tensor, seeds: Tensor) -> Hypotheses:
            sampling = (temperature, top_k, top_p, seeds)
            return sample(self.model, ids, *sampling, **self._options)

        task = ("sample", temperature, top_k, top_p)
        return [best for [best] in self._translations(task, draw, sources, seeds)]

    def score(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Log probability of each target text given its source text.

        Returns:
            Log probabilities of the tokens with EOS, float32 `[n]`, not normalized,
            and numbers of tokens with EOS, int32 `[n]`.

        Raises:
            TypeError: `sources` or `targets` is not a sequence of strings.
            ValueError: the numbers of sources and targets differ.
        """
        found = self.score_tokens(sources, targets)
        log_probs = np.array([np.sum(each.log_probs) for each in found], np.float32)
        return log_probs, np.array([each.lengths for each in found], np.int32)

    def score_tokens(
        self, sources: Sequence[str], targets: Sequence[str], k: int = 0
    ) -> list[TokenScores]:
        """Log probability of each token of the targets; see `decoding.score_tokens`.

        Args:
            sources, targets: texts.
            k: number of words to return beside each token, the most probable ones.

        Returns:
            NumPy arrays for each target, without the axis `B` and without padding.

        Raises:
            TypeError: `sources` or `targets` is not a sequence of strings.
            ValueError: the numbers of sources and targets differ, or `k` is out of
                range.
        """
        if len(sources) != len(targets):
            raise ValueError(
                "`sources` and `targets` must have the same length. Received: "
                f"{len(sources)} sources, {len(targets)} targets"
            )
        sides = [self._encode("sources", sources), self._encode("targets", targets)]
        function = functools.partial(score_tokens, self.model, k=k)
        results: dict[int, TokenScores] = {}
        for rows, found in self._run(("score", k), function, sides):
            for row, ids, log_probs, length, *best in zip(rows, *found, strict=True):
                parts = (x[:length] for x in best)
                results[row] = TokenScores(
                    ids[:length], log_probs[:length], length, *parts
                )
        return [results[row] for row in range(len(sources))]
