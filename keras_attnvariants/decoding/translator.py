"""From texts to texts, in few compiled shapes."""

import functools
import warnings
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import Protocol

import keras
import numpy as np
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.decoding.batching import check_sizes
from keras_attnvariants.decoding.batching import pad_sequences
from keras_attnvariants.decoding.batching import plan_batches
from keras_attnvariants.decoding.beam_search import beam_search
from keras_attnvariants.decoding.checks import check_lengths
from keras_attnvariants.decoding.scoring import score
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Tensor


class Translation(NamedTuple):
    """One translation of a text.

    Attributes:
        text: the detokenized translation.
        score: log probability after length normalization.
        log_prob: log probability of the tokens and EOS.
    """

    text: str
    score: float
    log_prob: float


class TextTokenizer(Protocol):
    """What `Translator` asks of a tokenizer, such as `keras_attnvariants.Tokenizer`."""

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """The ids of each text, without BOS and EOS."""

    def decode(self, ids: Sequence[Sequence[int]]) -> Sequence[str]:
        """The texts of lists of ids."""


class Translator:
    """Translates lists of texts with a model and its tokenizer.

    Texts are tokenized, sorted by length and packed into batches of the shapes
    `batch_sizes` x `source_lengths`. The search is compiled once for each shape that
    occurs, at most `len(batch_sizes) * len(source_lengths)` times. Translations are in
    the order of the texts, and do not depend on the texts around them. A text that is
    empty or white space has the empty translation; the model is not asked. A text of
    more tokens than the largest of `source_lengths` is truncated, with a warning the
    first time.

    Args:
        model: a step model, see `keras_attnvariants.decoding.StepModel`. Its current
            weights are used, also if they change after compilation.
        tokenizer: with `encode` and `decode`, see `TextTokenizer`.
        beam_size: number of live hypotheses; 1 is greedy search.
        length_penalty: exponent of the length normalization. By default, this and
            `beam_size` are those of the model's `search_settings`.
        min_length: smallest number of target tokens before EOS.
        max_length: largest number of target tokens with EOS. By default those of
            the source plus `extra_length` of the model, at most `model.max_length`.
        block_unknown: whether to forbid UNK in translations.
        batch_sizes: numbers of sentences in a batch.
        source_lengths: numbers of source tokens, at most `model.max_length` each.
        xla: on TensorFlow, whether XLA compiles the search; `None` to let
            `keras_attnvariants.backend.gains_from_xla` decide.

    Attributes:
        num_compilations: how often a search or a scoring was compiled so far.
        num_truncated: how many texts were truncated so far.

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
        min_length: int = 0,
        max_length: int | None = None,
        block_unknown: bool = False,
        batch_sizes: Sequence[int] = (1, 8, 32),
        source_lengths: Sequence[int] = (16, 32, 64, 128, 256),
        xla: bool | None = None,
    ) -> None:
        settings = SearchSettings.of(
            model, beam_size=beam_size, length_penalty=length_penalty
        )
        check_lengths(min_length, max_length, model.max_length)
        self.model = model
        self.tokenizer = tokenizer
        self.beam_size = settings.beam_size
        self.batch_sizes = check_sizes("batch_sizes", batch_sizes)
        self.source_lengths = check_sizes(
            "source_lengths", source_lengths, largest=model.max_length
        )
        self.xla = backend.gains_from_xla(model) if xla is None else xla
        self.num_compilations = 0
        self.num_truncated = 0
        self._options: dict[str, Any] = {
            "beam_size": settings.beam_size,
            "length_penalty": settings.length_penalty,
            "min_length": min_length,
            "max_length": max_length,
            "block_unknown": block_unknown,
        }
        self._variables = getattr(model, "variables", [])
        self._compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def translate(self, texts: Sequence[str]) -> list[str]:
        """The best translation of each text.

        Raises:
            TypeError: `texts` is not a sequence of strings.
        """
        return [best.text for [best] in self.translate_nbest(texts, n_best=1)]

    def translate_nbest(
        self, texts: Sequence[str], n_best: int | None = None
    ) -> list[list[Translation]]:
        """The best translations of each text, best first.

        Each new value of `n_best` is compiled.

        Args:
            texts: the source texts.
            n_best: number of translations; by default `beam_size`.

        Returns:
            A list of `Translation` per text, shorter than `n_best` if the search found
            fewer. Two of them may have the same text, from different tokens.

        Raises:
            TypeError: `texts` is not a sequence of strings.
            ValueError: `n_best` is not a positive integer.
        """
        n_best = self.beam_size if n_best is None else n_best
        check_integer("n_best", n_best)
        sources = self._encode("texts", texts)
        results = [[Translation("", 0.0, 0.0)] for _ in sources]
        indices = [index for index, source in enumerate(sources) if source]
        lengths = [len(sources[index]) for index in indices]
        for batch in plan_batches(lengths, self.batch_sizes, self.source_lengths):
            chosen = [indices[number] for number in batch.indices]
            ids = pad_sequences(
                [sources[index] for index in chosen],
                batch.size,
                batch.length,
                self.model.pad_id,
            )
            for index, result in zip(chosen, self._search(ids, n_best), strict=True):
                results[index] = result
        return results

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
        if len(sources) != len(targets):
            raise ValueError(
                "`sources` and `targets` must be of equal number. Received: "
                f"{len(sources)} sources, {len(targets)} targets"
            )
        source_ids = self._encode("sources", sources)
        target_ids = self._encode("targets", targets, room_for=1)
        # One length for both sides: two would square the number of shapes.
        lengths = [
            max(len(source), len(target) + 1)
            for source, target in zip(source_ids, target_ids, strict=True)
        ]
        log_probs = np.zeros(len(lengths), dtype=np.float32)
        counts = np.zeros(len(lengths), dtype=np.int32)
        for batch in plan_batches(lengths, self.batch_sizes, self.source_lengths):
            sides = [
                pad_sequences(
                    [ids[i] for i in batch.indices],
                    batch.size,
                    length,
                    self.model.pad_id,
                )
                for ids, length in (
                    (source_ids, batch.length),
                    (target_ids, batch.length - 1),
                )
            ]
            found = self._run("score", lambda s, t: score(self.model, s, t), *sides)
            used = len(batch.indices)
            log_probs[batch.indices], counts[batch.indices] = (x[:used] for x in found)
        return log_probs, counts

    def _search(self, ids: np.ndarray, n_best: int) -> list[list[Translation]]:
        """Translations of the rows of `ids` that hold a sentence."""

        def search(ids: Tensor) -> tuple[Tensor, ...]:
            found = beam_search(self.model, ids, n_best=n_best, **self._options)
            return found[:4]

        found = self._run(("search", n_best), search, ids)
        rows = int((ids != self.model.pad_id).any(axis=1).sum())
        tokens, scores, log_probs, lengths = (values[:rows] for values in found)
        exists = lengths > 0
        texts = self.tokenizer.decode(
            [
                row[: length - 1].tolist()
                for row, length in zip(tokens[exists], lengths[exists], strict=True)
            ]
        )
        flat = iter(
            map(Translation, texts, scores[exists].tolist(), log_probs[exists].tolist())
        )
        return [[next(flat) for _ in range(count)] for count in exists.sum(axis=1)]

    def _run(
        self, task: Any, function: Callable[..., Any], *inputs: np.ndarray
    ) -> list[np.ndarray]:
        """Runs `function`, compiled once for each task and shape of inputs."""
        key = (task, *(array.shape for array in inputs))
        if key not in self._compiled:
            # A new partial object: TensorFlow would take several shapes of one function
            # for needless retracing, and warn.
            traced = functools.partial(self._traced, function)
            self._compiled[key] = backend.jit(traced, xla=self.xla)
        weights = [variable.value for variable in self._variables]
        outputs = self._compiled[key](weights, *map(ops.convert_to_tensor, inputs))
        return [ops.convert_to_numpy(output) for output in outputs]

    def _traced(
        self, function: Callable[..., Any], weights: list[Tensor], *inputs: Tensor
    ) -> Any:
        """Calls `function` with weights that are arguments.

        JAX would otherwise compile the current values of the weights.
        """
        self.num_compilations += 1
        pairs = list(zip(self._variables, weights, strict=True))
        with keras.StatelessScope(state_mapping=pairs):
            return function(*inputs)

    def _encode(
        self, name: str, texts: Sequence[str], room_for: int = 0
    ) -> list[list[int]]:
        """Ids of each text, none for empty ones, truncated to the largest length.

        Args:
            name: of the argument, for messages.
            texts: what to encode.
            room_for: how many tokens will be added.
        """
        is_list = isinstance(texts, Sequence) and not isinstance(texts, str | bytes)
        if not is_list or not all(isinstance(text, str) for text in texts):
            raise TypeError(
                f"`{name}` must be a sequence of strings. Received: {texts!r:.80}"
            )
        ids: list[list[int]] = [[] for _ in texts]
        indices = [index for index, text in enumerate(texts) if text.strip()]
        encoded = self.tokenizer.encode([texts[index] for index in indices])
        longest = self.source_lengths[-1] - room_for
        too_long = sum(len(tokens) > longest for tokens in encoded)
        if too_long and not self.num_truncated:
            warnings.warn(
                f"`{name}` has texts of more than {longest} tokens. They are "
                "truncated, and counted in `num_truncated`.",
                stacklevel=3,
            )
        self.num_truncated += too_long
        for index, tokens in zip(indices, encoded, strict=True):
            ids[index] = list(tokens[:longest])
        return ids
