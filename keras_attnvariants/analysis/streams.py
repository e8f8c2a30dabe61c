"""The attention weights of a model over a corpus, one batch at a time."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np

from keras_attnvariants import backend
from keras_attnvariants.data import Corpus
from keras_attnvariants.data.tasks import task_of
from keras_attnvariants.data.text_files import read_text_lines
from keras_attnvariants.decoding.step_model import source_positions
from keras_attnvariants.decoding.texts import pad_sequences
from keras_attnvariants.evaluation.attention_maps import LayerWeights
from keras_attnvariants.evaluation.attention_maps import layer_weights
from keras_attnvariants.utils.chunks import chunks

# A sentence and its translation.
Pairs = Iterable[tuple[str, str]]

# From the bottom of a model to its top.
PLACES = ("encoder", "decoder", "cross")

# Sources that are encoded, or sorted by length, together.
CHUNK = 1024
SHORTEST = 16
MAX_SENTENCES = 64
# Weights of one head on a batch; memory is a multiple of this.
MAX_WEIGHTS = 1 << 17
NO_WEIGHTS = "No layer of this model has weights of this kind. n-grams have none."


class Example(NamedTuple):
    """One pair of sentences.

    Attributes:
        source_ids, target_ids: their tokens, without BOS and EOS.
        note: further data of an analysis about the pair.
    """

    source_ids: Sequence[int]
    target_ids: Sequence[int]
    note: Any = None


class BatchWeights(NamedTuple):
    """The weights of one layer on a batch.

    Attributes:
        place: `"encoder"`, `"decoder"` or `"cross"`.
        depth: number of the layer, from 1 at the bottom.
        weights: `[B, H, T, S]`, between tokens; rows of padding are 0.
        queries: bool `[B, T]`, the rows that are not padding.
        keys: bool `[B, S]`, the columns that are not padding.
        raw: the layer, and the weights as it returned them.
    """

    place: str
    depth: int
    weights: np.ndarray
    queries: np.ndarray
    keys: np.ndarray
    raw: LayerWeights

    @property
    def rows(self) -> np.ndarray:
        """Bool `[B, H, T]`: the rows that have weights."""
        return self.queries[:, None] & (self.weights.sum(-1) > 0)

    @property
    def visible(self) -> np.ndarray:
        """Bool `[B, T, S]`: the positions that each row can attend to."""
        visible = self.queries[:, :, None] & self.keys[:, None]
        return np.tril(visible) if self.place == "decoder" else visible

    @property
    def offsets(self) -> np.ndarray:
        """Int `[B, H, T]`: position of the largest weight minus that of the query."""
        return self.weights.argmax(-1) - np.arange(self.weights.shape[2])


class Batch(NamedTuple):
    """Pairs of sentences and the weights on them.

    Attributes:
        numbers: int `[B]`, the numbers of the pairs in the corpus, from 0.
        examples: the pairs.
        layers: the weights of every layer with weights.
    """

    numbers: np.ndarray
    examples: list[Example]
    layers: list[BatchWeights]


class Stream:
    """The weights of a model in teacher-forced passes over a corpus.

    Memory does not depend on the number of sentences. Pairs with a side that is empty,
    or longer than the model takes, are skipped.

    Args:
        model: with a method `attention_scores`, such as a `Transformer`.
        examples: the corpus, read once.

    Attributes:
        sentences, skipped: numbers of pairs analysed and skipped so far.
    """

    def __init__(self, model: Any, examples: Iterable[Example]) -> None:
        self.model = model
        self.examples = examples
        self.sentences = self.skipped = 0
        self._scores = backend.jit(model.attention_scores, xla=False)

    def __iter__(self) -> Iterator[Batch]:
        size = min(CHUNK, task_of(self.model).at_once)
        for chunk in chunks(enumerate(self.examples), size):
            yield from self._batches(chunk)
        if not self.sentences:
            raise ValueError(
                "There is no sentence to analyse that fits the model. Received: "
                f"{self.skipped} that are empty or too long"
            )

    def _batches(self, chunk: list[tuple[int, Example]]) -> Iterator[Batch]:
        """The batches of some pairs and their numbers."""
        buckets: dict[int, list[tuple[int, Example]]] = {}
        for number, example in chunk:
            source, target, _ = example
            longest = max(source_positions(self.model, len(source)), len(target) + 1)
            if len(source) and target and longest <= self.model.max_length:
                # The next power of two: few shapes, and little padding.
                length = max(SHORTEST, 1 << (longest - 1).bit_length())
                length = min(length, self.model.max_length)
                buckets.setdefault(length, []).append((number, example))
            else:
                self.skipped += 1
        for length in sorted(buckets):
            size = max(1, min(MAX_SENTENCES, MAX_WEIGHTS // length**2))
            for chosen in chunks(buckets[length], size):
                numbers, examples = map(list, zip(*chosen, strict=True))
                self.sentences += len(chosen)
                layers = self._layers(examples, size, length)
                yield Batch(np.array(numbers), examples, layers)

    def _layers(
        self, examples: list[Example], size: int, length: int
    ) -> list[BatchWeights]:
        """The weights on a batch, padded to `size` pairs of `length` positions."""
        model, count = self.model, len(examples)
        width = length * getattr(model, "source_stride", 1)
        sources = [example.source_ids for example in examples]
        targets = [[model.bos_id, *example.target_ids] for example in examples]
        inputs = {
            "source_ids": pad_sequences(sources, size, width, model.pad_id),
            "target_ids": pad_sequences(targets, size, length, model.pad_id),
        }
        target = inputs["target_ids"][:count] != model.pad_id
        counts = [source_positions(model, len(ids)) for ids in sources]
        source = np.arange(length) < np.array(counts)[:, None]
        sides_of = {
            "encoder": (source, source),
            "decoder": (target, target),
            "cross": (target, source),
        }
        found = layer_weights(model, self._scores(inputs))
        layers = (x._replace(weights=x.weights[:count]) for x in found)
        return [
            BatchWeights(x.place, x.depth, x.of_tokens(), *sides_of[x.place], x)
            for x in layers
        ]


def encoded(tokenizer: Any, pairs: Pairs) -> Iterator[Example]:
    """Pairs of texts as tokens, a chunk at a time; recordings one by one."""
    for chunk in chunks(pairs, max(1, CHUNK // getattr(tokenizer, "source_stride", 1))):
        sources, targets = map(list, zip(*chunk, strict=True))
        ids = tokenizer.encode(sources), tokenizer.target.encode(targets)
        yield from map(Example, *ids)


def read_pairs(corpus: Corpus, split: str) -> Iterator[tuple[str, str]]:
    """The sentences of a split and their translations, read as they are needed.

    Raises:
        ValueError: the corpus has no such split.
    """
    yield from zip(*map(read_text_lines, corpus.files(split)), strict=True)


def layer_sums(
    stream: Stream,
    measure: Callable[[BatchWeights], np.ndarray | None],
    missing: str = NO_WEIGHTS,
) -> dict[tuple[str, int], np.ndarray]:
    """Measurements of each layer, added up over all batches.

    Args:
        stream: the weights.
        measure: returns an array, or `None` to skip a layer.
        missing: the error if no layer counts.

    Returns:
        Sums by place and depth: places in the order of data flow, layers from the
        bottom.

    Raises:
        ValueError: no layer counts.
    """
    sums: dict[tuple[str, int], np.ndarray] = {}
    for batch in stream:
        for layer in batch.layers:
            if (found := measure(layer)) is not None:
                key = layer.place, layer.depth
                sums[key] = sums[key] + found if key in sums else found
    if not sums:
        raise ValueError(missing)
    in_order = sorted(sums, key=lambda key: (PLACES.index(key[0]), key[1]))
    return {key: sums[key] for key in in_order}


def per_head(layer: BatchWeights, *values: np.ndarray) -> np.ndarray:
    """Float64 `[H, 1 + n]`: the number of rows with weights, and sums over them.

    Args:
        layer: the weights.
        *values: `[B, H, T]` each, or a shape that broadcasts to it.
    """
    rows = layer.rows
    parts = [rows, *(value * rows for value in values)]
    return np.stack([part.sum((0, 2), dtype="float64") for part in parts], axis=-1)


def head_sums(
    stream: Stream, measure: Callable[[BatchWeights], np.ndarray]
) -> Iterator[tuple[tuple[str, int, int], float, np.ndarray]]:
    """Place, layer and number of each head that has weights, its count, and sums.

    Args:
        stream: the weights.
        measure: returns the counts and the sums of a layer, `[H, 1 + n]`.
    """
    for (place, depth), heads in layer_sums(stream, measure).items():
        for number, (count, *sums) in enumerate(heads, start=1):
            if count:
                yield (place, depth, number), count, np.array(sums)
