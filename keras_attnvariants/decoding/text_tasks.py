"""Functions of a model on lists of texts, in batches of few compiled shapes."""

import functools
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attnvariants.decoding.batching import check_sizes
from keras_attnvariants.decoding.batching import pad_sequences
from keras_attnvariants.decoding.batching import plan_batches
from keras_attnvariants.decoding.compiled import CompiledTasks
from keras_attnvariants.decoding.hypotheses import Hypotheses
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.text_encoder import TextEncoder
from keras_attnvariants.decoding.text_encoder import TextTokenizer
from keras_attnvariants.decoding.translation import Translation
from keras_attnvariants.decoding.translation import to_translations


class TextTasks:
    """Runs functions of a model on texts; see `Translator` for the arguments.

    Attributes:
        sizes: numbers of sentences in a batch, ascending.
        lengths: numbers of tokens, ascending.
        encode: the ids of texts, see `TextEncoder.encode`.
    """

    def __init__(
        self,
        model: StepModel,
        tokenizer: TextTokenizer,
        batch_sizes: Sequence[int],
        source_lengths: Sequence[int],
        xla: bool | None,
    ) -> None:
        self.sizes = check_sizes("batch_sizes", batch_sizes)
        self.lengths = check_sizes("source_lengths", source_lengths, model.max_length)
        self._model = model
        self._tokenizer = tokenizer
        self._texts = TextEncoder(tokenizer, self.lengths[-1])
        self._compiled = CompiledTasks(model, xla)
        self.encode = self._texts.encode

    @property
    def num_compilations(self) -> int:
        """How often a function was compiled so far."""
        return self._compiled.num_compilations

    @property
    def num_truncated(self) -> int:
        """How many texts were truncated so far."""
        return self._texts.num_truncated

    def translations(
        self,
        sources: list[list[int]],
        task: Hashable,
        function: Callable[..., Hypotheses],
        *more: np.ndarray,
    ) -> list[list[Translation]]:
        """Translations of encoded texts by a search.

        Args:
            sources: ids of each text; those without any are not searched.
            task: all that distinguishes the search from others.
            function: takes ids, int `[B, S]`, and what is in `more`.
            more: inputs with one value per text.
        """
        results = [[Translation("", 0.0, 0.0)] for _ in sources]
        indices = [index for index, source in enumerate(sources) if source]
        lengths = [len(sources[index]) for index in indices]
        for batch in plan_batches(lengths, self.sizes, self.lengths):
            chosen = [indices[number] for number in batch.indices]
            ids = self._padded([sources[i] for i in chosen], batch.size, batch.length)
            rows = np.resize(chosen, batch.size)
            found = self._compiled.run(task, function, ids, *(x[rows] for x in more))
            found = [values[: len(chosen)] for values in found]
            translations = to_translations(self._tokenizer, *found)
            for index, result in zip(chosen, translations, strict=True):
                results[index] = result
        return results

    def of_pairs(
        self,
        task: Hashable,
        function: Callable[..., Any],
        sources: Sequence[str],
        targets: Sequence[str],
    ) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
        """Results for pairs of texts, with the rows that they are for.

        Args:
            task: all that distinguishes the function from others.
            function: takes the model and ids of both sides, int `[B, S]` and `[B, T]`.
            sources, targets: texts.

        Raises:
            TypeError: `sources` or `targets` is not a sequence of strings.
            ValueError: the numbers of sources and targets differ.
        """
        if len(sources) != len(targets):
            raise ValueError(
                "`sources` and `targets` must be of equal number. Received: "
                f"{len(sources)} sources, {len(targets)} targets"
            )
        source_ids = self.encode("sources", sources)
        target_ids = self.encode("targets", targets, room_for=1)
        # One length for both sides: two would square the number of shapes.
        lengths = [
            max(len(source), len(target) + 1)
            for source, target in zip(source_ids, target_ids, strict=True)
        ]
        for batch in plan_batches(lengths, self.sizes, self.lengths):
            sides = [
                self._padded([ids[i] for i in batch.indices], batch.size, length)
                for ids, length in (
                    (source_ids, batch.length),
                    (target_ids, batch.length - 1),
                )
            ]
            run = functools.partial(function, self._model)
            found = self._compiled.run(task, run, *sides)
            yield batch.indices, [values[: len(batch.indices)] for values in found]

    def _padded(
        self, sequences: Sequence[Sequence[int]], size: int, length: int
    ) -> np.ndarray:
        return pad_sequences(sequences, size, length, self._model.pad_id)
