"""Runs functions of a model on lists of texts, in batches of few compiled shapes."""

import bisect
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
from keras_attnvariants.decoding.options import check_sizes
from keras_attnvariants.decoding.staged_search import Hypotheses
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.step_model import source_positions
from keras_attnvariants.utils.typing import Tensor


class TextTokenizer(Protocol):
    """A tokenizer for `Translator`, such as `keras_attnvariants.Tokenizer`.

    If it has an attribute `target`, also a tokenizer, this one encodes targets. For a
    model with a `source_stride`, `encode` also has an argument `longest`, the maximum
    number of ids of each source.
    """

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """The ids of each text, without BOS and EOS."""

    def decode(self, ids: Sequence[Sequence[int]]) -> Sequence[str]:
        """The text for each list of ids."""


class Translation(NamedTuple):
    """One translation of a text.

    Attributes:
        text: the detokenized translation.
        score: log probability after length normalization.
        log_prob: log probability of the tokens and EOS.
        tokens: ids of the tokens and EOS, if their log probabilities were requested.
        token_log_probs: their log probabilities; their sum is `log_prob`.
    """

    text: str
    score: float
    log_prob: float
    tokens: tuple[int, ...] = ()
    token_log_probs: tuple[float, ...] = ()


class TextTasks:
    """Functions of a model on texts; see `Translator` for the arguments.

    Attributes:
        batch_sizes: numbers of sentences in a batch, ascending.
        source_lengths: numbers of positions, ascending.
        num_compilations: number of compilations so far.
        num_truncated: number of texts truncated so far; the first causes a warning.
    """

    def __init__(
        self,
        model: StepModel,
        tokenizer: TextTokenizer,
        batch_sizes: Sequence[int],
        source_lengths: Sequence[int],
        xla: bool | None,
    ) -> None:
        longest = model.max_length
        self.batch_sizes = check_sizes("batch_sizes", batch_sizes)
        self.source_lengths = check_sizes("source_lengths", source_lengths, longest)
        self.num_compilations = self.num_truncated = 0
        self.model = model
        self._stride = getattr(model, "source_stride", 1)
        self.tokenizer = tokenizer
        self._xla = backend.gains_from_xla(model) if xla is None else xla
        # XLA needs fixed shapes; step models that are no Keras models may need them.
        is_xla = self._xla or backend.name() == "jax"
        self._has_fixed_shapes = is_xla or not isinstance(model, keras.Model)
        self._variables: Sequence[keras.Variable] = getattr(model, "variables", [])
        self._compiled: dict[Hashable, Callable[..., Any]] = {}

    def _encode(self, name: str, texts: Sequence[str]) -> list[Sequence[int]]:
        """Ids of each text; none for a text that is empty or white space.

        Args:
            name: name of the argument, for messages.
            texts: the texts to encode; those that are too long are truncated.

        Raises:
            TypeError: they are not a sequence of strings.
        """
        is_list = isinstance(texts, Sequence) and not isinstance(texts, str | bytes)
        if not is_list or not all(isinstance(text, str) for text in texts):
            raise TypeError(
                f"`{name}` must be a sequence of strings. Received: {texts!r:.80}"
            )
        encode: Callable[..., Any] = self.tokenizer.encode
        longest = self.source_lengths[-1] * self._stride
        if name == "targets":
            encode = getattr(self.tokenizer, "target", self.tokenizer).encode
            longest = self.source_lengths[-1] - 1  # BOS or EOS
        elif self._stride > 1:
            # One id more shows that a recording is too long; the rest is not read.
            encode = functools.partial(encode, longest=longest + 1)
        encoded = encode([text for text in texts if text.strip()])
        too_long = sum(len(tokens) > longest for tokens in encoded)
        if too_long and not self.num_truncated:
            warnings.warn(
                f"`{name}` has texts of more than {longest} tokens. They are "
                "truncated, and counted in `num_truncated`.",
                stacklevel=3,
            )
        self.num_truncated += too_long
        rows = iter(encoded)
        return [next(rows)[:longest] if text.strip() else [] for text in texts]

    def _translations(
        self,
        task: Hashable,
        function: Callable[..., Hypotheses],
        sources: Sequence[Sequence[int]],
        *more: np.ndarray,
    ) -> list[list[Translation]]:
        """Translations of encoded texts by a search.

        Args:
            task: identifies the search among others.
            function: takes ids, int `[B, S]`, and the inputs in `more`.
            sources: ids of each text; texts without ids are not searched.
            more: inputs with one value per text.
        """
        results = [[Translation("", 0.0, 0.0)] for _ in sources]
        places = [place for place, source in enumerate(sources) if len(source)]
        searched = [sources[place] for place in places]
        values = (x[places] for x in more)
        for rows, found in self._run(task, function, [searched], *values):
            translations = to_translations(self.tokenizer, found)
            for row, result in zip(rows, translations, strict=True):
                results[places[row]] = result
        return results

    def _run(
        self,
        task: Hashable,
        function: Callable[..., Any],
        sides: Sequence[Sequence[Sequence[int]]],
        *more: np.ndarray,
    ) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
        """The outputs of a function for batches of texts.

        Args:
            task: identifies the function among others.
            function: returns a sequence of tensors `[B, ...]`; each `None` is left out.
            sides: ids of each source and of each target, which are padded to one length
                (targets to one less): two lengths would square the number of shapes.
            more: inputs with one value per text.

        Yields:
            The texts of a batch, int `[n]`, and the outputs for them.
        """
        lengths = [
            max(
                [source_positions(self.model, len(source)), *(len(t) + 1 for t in rest)]
            )
            for source, *rest in zip(*sides, strict=True)
        ]
        for rows, size, length in plan_batches(
            lengths, self.batch_sizes, self.source_lengths
        ):
            if not self._has_fixed_shapes:
                size, length = len(rows), lengths[rows[0]]
            pad_id = self.model.pad_id
            widths = length * self._stride, length - 1
            inputs = [
                pad_sequences([texts[row] for row in rows], size, width, pad_id)
                for texts, width in zip(sides, widths, strict=False)
            ]
            inputs += [x[np.resize(rows, size)] for x in more]
            outputs = self._outputs(task, function, inputs)
            yield rows, [values[: len(rows)] for values in outputs]

    def _outputs(
        self, task: Hashable, function: Callable[..., Any], inputs: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """The outputs of a function with the current weights of the model.

        The function is compiled once for each task and, if shapes are fixed, for each
        shape.
        """

        def traced(weights: list[Tensor], *inputs: Tensor) -> Any:
            # Weights are arguments: JAX would otherwise compile their current values.
            self.num_compilations += 1
            pairs = list(zip(self._variables, weights, strict=True))
            with keras.StatelessScope(state_mapping=pairs):
                return function(*inputs)

        weights = [backend.local_value(variable) for variable in self._variables]
        given = (weights, *map(ops.convert_to_tensor, inputs))
        fixed = self._has_fixed_shapes
        key = (task, *(array.shape for array in inputs)) if fixed else task
        if key not in self._compiled:
            self._compiled[key] = (
                backend.jit(traced, xla=self._xla)
                if fixed
                else backend.jit_for_any_sizes(traced, *given)
            )
        outputs = self._compiled[key](*given)
        return [
            ops.convert_to_numpy(output) for output in outputs if output is not None
        ]


def to_translations(
    tokenizer: TextTokenizer, found: Sequence[np.ndarray]
) -> list[list[Translation]]:
    """The translations that a search found for each sentence, best first.

    Args:
        tokenizer: to decode with.
        found: ids, scores, log_probs and lengths as in `Hypotheses`, and perhaps its
            `token_log_probs`.
    """
    ids, scores, log_probs, lengths, *token_log_probs = found
    exists = lengths > 0
    sizes = lengths[exists]
    rows = [row[:size].tolist() for row, size in zip(ids[exists], sizes, strict=True)]
    columns: list[Iterable[Any]] = [
        tokenizer.decode([row[:-1] for row in rows]),
        scores[exists].tolist(),
        log_probs[exists].tolist(),
    ]
    for values in token_log_probs:
        pairs = zip(values[exists], sizes, strict=True)
        columns += [map(tuple, rows), (tuple(x[:size].tolist()) for x, size in pairs)]
    results: Iterator[Translation] = map(Translation, *columns)
    return [[next(results) for _ in range(count)] for count in exists.sum(axis=1)]


def plan_batches(
    lengths: Sequence[int], sizes: Sequence[int], buckets: Sequence[int]
) -> Iterator[tuple[np.ndarray, int, int]]:
    """Groups sequences of similar length, the longest first.

    Only the last batch may be smaller than the largest size. A few texts therefore form
    one batch, however different their lengths. The first batch needs the most memory.

    Args:
        lengths: lengths of the sequences, at most `buckets[-1]`.
        sizes: allowed batch sizes, ascending.
        buckets: allowed lengths, ascending.

    Yields:
        The indices of the sequences of a batch, int `[n]`, and the smallest size and
        length that hold them.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    for start in range(0, len(order), sizes[-1]):
        indices = order[start : start + sizes[-1]]
        size = sizes[bisect.bisect_left(sizes, len(indices))]
        yield indices, size, buckets[bisect.bisect_left(buckets, lengths[indices[0]])]


def pad_sequences(
    sequences: Sequence[Sequence[int]], size: int, length: int, pad_id: int
) -> np.ndarray:
    """Sequences of ids as one array, int32 `[size, length]`, padded with `pad_id`."""
    rows = [*sequences, *[()] * (size - len(sequences))]
    return keras.utils.pad_sequences(rows, length, padding="post", value=pad_id)
