"""Functions of a model on lists of texts, in batches of few compiled shapes."""

import functools
import warnings
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import Protocol

import keras
import numpy as np
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.decoding.hypotheses import Hypotheses
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Tensor


class TextTokenizer(Protocol):
    """A tokenizer for `Translator`, such as `keras_attnvariants.Tokenizer`."""

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """The ids of each text, without BOS and EOS."""

    def decode(self, ids: Sequence[Sequence[int]]) -> Sequence[str]:
        """The texts of lists of ids."""


class Translation(NamedTuple):
    """One translation of a text.

    Attributes:
        text: the detokenized translation.
        score: log probability after length normalization.
        log_prob: log probability of the tokens and EOS.
        tokens: ids of the tokens and EOS, if their log probabilities were asked for.
        token_log_probs: their log probabilities; their sum is `log_prob`.
    """

    text: str
    score: float
    log_prob: float
    tokens: tuple[int, ...] = ()
    token_log_probs: tuple[float, ...] = ()


class TextTasks:
    """Runs functions of a model on texts; see `Translator` for the arguments.

    Attributes:
        sizes: numbers of sentences in a batch, ascending.
        lengths: numbers of tokens, ascending.
        num_compilations: how often a function was compiled so far.
        num_truncated: how many texts were cut so far; the first gives a warning.
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
        self.num_compilations = self.num_truncated = 0
        self._model = model
        self._tokenizer = tokenizer
        self._xla = backend.gains_from_xla(model) if xla is None else xla
        self._variables: Sequence[keras.Variable] = getattr(model, "variables", [])
        self._compiled: dict[Hashable, Callable[..., Any]] = {}

    def encode(
        self, name: str, texts: Sequence[str], room_for: int = 0
    ) -> list[list[int]]:
        """Ids of each text, none for those that are empty or white space.

        Args:
            name: name of the argument, for messages.
            texts: what to encode; those that are too long are cut.
            room_for: how many tokens will be added.

        Raises:
            TypeError: they are no sequence of strings.
        """
        is_list = isinstance(texts, Sequence) and not isinstance(texts, str | bytes)
        if not is_list or not all(isinstance(text, str) for text in texts):
            raise TypeError(
                f"`{name}` must be a sequence of strings. Received: {texts!r:.80}"
            )
        ids: list[list[int]] = [[] for _ in texts]
        indices = [index for index, text in enumerate(texts) if text.strip()]
        encoded = self._tokenizer.encode([texts[index] for index in indices])
        longest = self.lengths[-1] - room_for
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
            found = self._run(task, function, ids, *(x[rows] for x in more))
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
        run = functools.partial(function, self._model)
        for batch in plan_batches(lengths, self.sizes, self.lengths):
            sides = [
                self._padded([ids[i] for i in batch.indices], batch.size, length)
                for ids, length in (
                    (source_ids, batch.length),
                    (target_ids, batch.length - 1),
                )
            ]
            found = self._run(task, run, *sides)
            yield batch.indices, [values[: len(batch.indices)] for values in found]

    def _padded(
        self, sequences: Sequence[Sequence[int]], size: int, length: int
    ) -> np.ndarray:
        return pad_sequences(sequences, size, length, self._model.pad_id)

    def _run(
        self, task: Hashable, function: Callable[..., Any], *inputs: np.ndarray
    ) -> list[np.ndarray]:
        """The outputs of `function`, which is compiled once for each task and shape.

        The current weights of the model are used.

        Args:
            task: all that distinguishes the function from others.
            function: returns a sequence of tensors; each `None` is left out.
            inputs: inputs of the function.
        """
        key = (task, *(array.shape for array in inputs))
        if key not in self._compiled:
            # A new partial object: TensorFlow would take several shapes of one function
            # for needless retracing, and warn.
            traced = functools.partial(self._traced, function)
            self._compiled[key] = backend.jit(traced, xla=self._xla)
        weights = [backend.local_value(variable) for variable in self._variables]
        outputs = self._compiled[key](weights, *map(ops.convert_to_tensor, inputs))
        return [
            ops.convert_to_numpy(output) for output in outputs if output is not None
        ]

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


def to_translations(
    tokenizer: TextTokenizer,
    ids: np.ndarray,
    scores: np.ndarray,
    log_probs: np.ndarray,
    lengths: np.ndarray,
    gains: np.ndarray | None = None,
) -> list[list[Translation]]:
    """The translations that a search found for each sentence, best first.

    Args:
        tokenizer: to decode with.
        ids, scores, log_probs, lengths: as in `Hypotheses`.
        gains: its `token_log_probs`, or `None`.
    """
    exists = lengths > 0
    sizes = lengths[exists]
    rows = [row[:size].tolist() for row, size in zip(ids[exists], sizes, strict=True)]
    columns: list[Iterable[Any]] = [
        tokenizer.decode([row[:-1] for row in rows]),
        scores[exists].tolist(),
        log_probs[exists].tolist(),
    ]
    if gains is not None:
        pairs = zip(gains[exists], sizes, strict=True)
        columns += [
            map(tuple, rows),
            (tuple(row[:size].tolist()) for row, size in pairs),
        ]
    found: Iterator[Translation] = map(Translation, *columns)
    return [[next(found) for _ in range(count)] for count in exists.sum(axis=1)]


class Batch(NamedTuple):
    """Which sequences go together.

    Attributes:
        indices: int `[n]`, indices of the sequences, `n <= size`.
        size: number of rows of the batch.
        length: number of columns.
    """

    indices: np.ndarray
    size: int
    length: int


def plan_batches(
    lengths: Sequence[int], sizes: Sequence[int], buckets: Sequence[int]
) -> Iterator[Batch]:
    """Groups sequences of similar length, the longest first.

    Only the last batch may be smaller than the largest size, so that a few texts are
    one batch however much their lengths differ. The first batch needs the most memory.

    Args:
        lengths: lengths of the sequences, at most `buckets[-1]`.
        sizes: allowed batch sizes, ascending.
        buckets: allowed lengths, ascending.

    Yields:
        A `Batch` with the smallest size and length that hold its sequences.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    for start in range(0, len(order), sizes[-1]):
        indices = order[start : start + sizes[-1]]
        longest = lengths[indices[0]]
        yield Batch(
            indices,
            size=next(size for size in sizes if size >= len(indices)),
            length=next(length for length in buckets if length >= longest),
        )


def pad_sequences(
    sequences: Sequence[Sequence[int]], size: int, length: int, pad_id: int
) -> np.ndarray:
    """Sequences of ids as one array, int32 `[size, length]`, padded with `pad_id`."""
    ids = np.full((size, length), pad_id, dtype=np.int32)
    for row, sequence in zip(ids, sequences, strict=False):
        row[: len(sequence)] = sequence
    return ids


def check_sizes(name: str, values: Any, largest: int | None = None) -> tuple[int, ...]:
    """The distinct integers among `values`, cut off at `largest`, in ascending order.

    Raises:
        ValueError: `values` is not a sequence of positive integers, or it is empty.
    """
    if not isinstance(values, Sequence) or not values:
        raise ValueError(
            f"`{name}` must be a non-empty sequence of integers. Received: {values!r}"
        )
    sizes = (check_integer(name, value) for value in values)
    return tuple(sorted({min(size, largest or size) for size in sizes}))
