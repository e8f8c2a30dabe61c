"""Cross-attention compared with manual word alignments."""

import os
from collections.abc import Iterable
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from typing import NamedTuple

import numpy as np

from keras_attnvariants.analysis.contrastive_files import equal_lines
from keras_attnvariants.analysis.streams import BatchWeights
from keras_attnvariants.analysis.streams import Example
from keras_attnvariants.analysis.streams import Stream
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.data.alignments import Link
from keras_attnvariants.data.alignments import check_links
from keras_attnvariants.data.alignments import parse_links

# Resampled corpora, for intervals.
SAMPLES = 1000


class AlignedPair(NamedTuple):
    """A pair of sentences and the links between their words.

    Attributes:
        source, target: the sentences, words separated by white space.
        sure: links that an alignment should have.
        possible: links that it may have, the sure ones included.
    """

    source: str
    target: str
    sure: frozenset[Link]
    possible: frozenset[Link]


class HeadAlignment(NamedTuple):
    """Alignment of words by a head.

    Attributes:
        layer, head: the head; numbers from 1, layers from the bottom. Head `None` is
            the mean of the weights of all heads of the layer.
        error_rate: `1 - (|A & S| + |A & P|) / (|A| + |S|)` for the links A of the
            head, the sure links S and the possible links P (Och and Ney 2003).
        precision: share of its links that are possible.
        recall: share of the sure links that it has.
        links: number of its links.
        low, high: 95 % interval of the rate, from resampled sentences.
    """

    layer: int
    head: int | None
    error_rate: float
    precision: float
    recall: float
    links: int
    low: float
    high: float


def alignment_errors(model: Any, tokenizer: Any, pairs: Iterable[AlignedPair]) -> Table:
    """The alignment error rate of each head of cross-attention.

    In a teacher-forced pass, each target token is linked to the source token that has
    the largest weight in the row that predicts it. Two words are linked if any of
    their tokens are: the rule of Zenkel et al. 2019 and Garg et al. 2019 for subwords.
    Rows without weights link nothing.

    Args:
        model: with a method `attention_scores`, such as a `Transformer`.
        tokenizer: its tokenizer.
        pairs: see `read_alignments`; read once.

    Returns:
        For each layer, a `HeadAlignment` for the mean of its heads and one for each.

    Raises:
        ValueError: nothing can be analysed, or the model has no cross-attention with
            weights.
    """
    stream = Stream(model, aligned_examples(tokenizer, pairs))
    rng = np.random.default_rng(1)
    counts: dict[int, np.ndarray] = {}
    for batch in stream:
        times = times_drawn(rng, len(batch.examples))
        for layer in batch.layers:
            if layer.place == "cross":
                links = count_links(layer, batch.examples)
                before = counts.get(layer.depth, 0)
                counts[layer.depth] = before + np.tensordot(times, links, 1)
    if not counts:
        raise ValueError("This model has no cross-attention with weights.")
    rows = [
        head_alignment(depth, head or None, counts[depth][:, head])
        for depth in sorted(counts)
        for head in range(counts[depth].shape[1])
    ]
    return Table.of("alignment-errors", rows, stream.sentences, stream.skipped)


def times_drawn(rng: np.random.Generator, sentences: int) -> np.ndarray:
    """Occurrences of each sentence in each sample, int `[1 + SAMPLES, sentences]`.

    Row 0 is the corpus itself. Poisson draws are a bootstrap that need not know the
    number of sentences in advance.
    """
    drawn = rng.poisson(1.0, (SAMPLES, sentences))
    return np.concatenate([np.ones_like(drawn[:1]), drawn])


def head_alignment(layer: int, head: int | None, counts: np.ndarray) -> HeadAlignment:
    """The row of a head, from the counts `[1 + SAMPLES, 4]` of `count_links`."""
    links, sure, possible, gold = counts.T
    rates = 1 - (sure + possible) / np.maximum(links + gold, 1)
    some = links + gold > 0
    ends = np.percentile(rates[1:][some[1:]], (2.5, 97.5)) if some[0] else rates[[0, 0]]
    precision, recall = possible[0] / max(links[0], 1), sure[0] / max(gold[0], 1)
    return HeadAlignment(layer, head, rates[0], precision, recall, links[0], *ends)


class Words(NamedTuple):
    """The gold links of a pair, and which word each token belongs to."""

    source: np.ndarray
    target: np.ndarray
    pair: AlignedPair


def aligned_examples(tokenizer: Any, pairs: Iterable[AlignedPair]) -> Iterator[Example]:
    """The pairs as tokens, word by word: words never share a token."""
    for pair in pairs:
        sides = [
            tokenizer.encode(pair.source.split()),
            tokenizer.target.encode(pair.target.split()),
        ]
        words = [
            np.repeat(np.arange(len(side)), list(map(len, side))) for side in sides
        ]
        source, target = (list(chain.from_iterable(side)) for side in sides)
        yield Example(source, target, Words(words[0], words[1], pair))


def count_links(layer: BatchWeights, examples: list[Example]) -> np.ndarray:
    """Numbers of links by sentence and head, int `[B, 1 + H, 4]`.

    Head 0 is the mean of the heads. The four numbers are its links, the sure ones and
    the possible ones among them, and all sure links of the pair.
    """
    mean = layer.weights.mean(1, keepdims=True)
    weights = np.concatenate([mean, layer.weights], axis=1)
    peaks, some = weights.argmax(-1), weights.max(-1) > 0
    counts = np.zeros((*weights.shape[:2], 4), "int64")
    for number, head in np.ndindex(*weights.shape[:2]):
        words: Words = examples[number].note
        sure, possible = words.pair.sure, words.pair.possible
        rows = np.flatnonzero(some[number, head, : len(words.target)])
        sources = words.source[peaks[number, head, rows]]
        links = set(zip(sources.tolist(), words.target[rows].tolist(), strict=True))
        found = len(links), len(links & sure), len(links & possible), len(sure)
        counts[number, head] = found
    return counts


def read_alignments(
    folder: str | os.PathLike[str],
    source_language: str,
    target_language: str,
    split: str = "test",
    reverse: bool = False,
) -> Iterator[AlignedPair]:
    """The pairs of a split with their links, read as they are needed.

    The folder has the files `<split>.<language>`, with words separated by white space,
    and `<split>.align`, each plain or `.gz`. A line of links has the numbers of words,
    from 0: `0-0 1-2` for sure links, `1p2` or `1?2` for possible ones.

    Args:
        folder: folder of the files, such as `gold-align-grc-en`.
        source_language, target_language: languages of the model.
        split: name of the split.
        reverse: whether the target word comes first in a link.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: the files have different numbers of lines, or a line is not a
            list of links between words of its pair.
    """
    names = (source_language, target_language, "align")
    paths = [existing(Path(folder) / f"{split}.{name}") for name in names]
    for number, (source, target, links) in enumerate(equal_lines(paths), start=1):
        where = f"line {number} of {paths[2]}"
        sure, possible = parse_links(links, reverse, where)
        check_links(possible, len(source.split()), len(target.split()), where)
        yield AlignedPair(source, target, sure, possible)


def existing(path: Path) -> Path:
    """The file of this name, or with `.gz` appended."""
    compressed = path.with_name(f"{path.name}.gz")
    return compressed if compressed.is_file() and not path.is_file() else path
