"""BLEU of several systems in bins of sentences, with bootstrap intervals."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from keras_attnvariants.analysis.heads import sentence_shares
from keras_attnvariants.analysis.streams import Pairs
from keras_attnvariants.analysis.streams import Stream
from keras_attnvariants.analysis.streams import encoded
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.backend.private import score_of_statistics
from keras_attnvariants.backend.private import sentence_statistics
from keras_attnvariants.evaluation.metrics import check_tokenizer
from keras_attnvariants.evaluation.report import Translate
from keras_attnvariants.evaluation.report import timed
from keras_attnvariants.evaluation.significance import resampled
from keras_attnvariants.utils.checks import check_integer

# The paper does not say where its bins end.
WORDS = (10, 20, 30, 40)
# Self-attention that sentences are sorted by.
PLACES = ("encoder", "decoder")


class BinScore(NamedTuple):
    """BLEU of a system on the sentences of a bin.

    Attributes:
        by: quantity that the sentences are sorted by.
        low, high: smallest and largest value of a sentence of the bin.
        sentences: number of sentences in the bin.
        system: name of the system.
        bleu: its BLEU.
        bleu_low, bleu_high: 95 % interval, from resampled sentences.
        difference: BLEU minus that of the first system; `None` for the first.
        difference_low, difference_high: its 95 % interval, from the same samples.
    """

    by: str
    low: float
    high: float
    sentences: int
    system: str
    bleu: float
    bleu_low: float
    bleu_high: float
    difference: float | None
    difference_low: float | None
    difference_high: float | None


def bleu_by_length(
    systems: Mapping[str, Translate],
    pairs: Pairs,
    edges: Sequence[int] = WORDS,
    samples: int = 1000,
    seed: int = 12345,
    tokenize: str = "13a",
) -> Table:
    """BLEU of systems by the length of the reference (You et al. 2020, Fig. 4).

    Args:
        systems: functions that translate a list of texts, such as
            `Translator(model, tokenizer).translate`, by name; the others are compared
            with the first.
        pairs: sources and references, read once.
        edges: the longest references of all bins but the last, in words separated by
            white space. The paper does not give them.
        samples: number of bootstrap samples of each bin.
        seed: seed of the samples.
        tokenize: sacrebleu's tokenizer.

    Returns:
        A `BinScore` for each bin that has sentences, and each system.

    Raises:
        ValueError: there is no system or no pair, the edges do not rise, or a system
            does not return one string per source.
    """
    if not edges or list(edges) != sorted(set(edges)):
        raise ValueError(f"`edges` must rise. Received: {edges}")
    texts = list(pairs)
    lengths = np.array([len(text.split()) for _, text in texts], "float64")
    bins = {"words of the reference": (lengths, np.searchsorted(edges, lengths))}
    rows = bin_scores(systems, texts, bins, samples, seed, tokenize)
    return Table.of("bleu-by-length", rows, len(texts))


def bleu_by_off_diagonality(
    model: Any,
    tokenizer: Any,
    systems: Mapping[str, Translate],
    pairs: Pairs,
    bins: int = 5,
    samples: int = 1000,
    seed: int = 12345,
    tokenize: str = "13a",
) -> Table:
    """BLEU of systems by the off-diagonality of sentences (You et al. 2020, Fig. 6).

    Sentences are sorted by the off-diagonality of self-attention in the encoder of
    `model`, then again in its decoder, into bins of equal size. Sentences of equal
    value stay in the order of the corpus.

    Args:
        model, tokenizer: the base model that the sentences are sorted by.
        systems, pairs, samples, seed, tokenize: see `bleu_by_length`.
        bins: number of bins; the paper does not give it.

    Returns:
        As `bleu_by_length`, for encoder and then decoder if they have weights.

    Raises:
        ValueError: see `bleu_by_length`, or the model has no self-attention with
            weights.
    """
    check_integer("bins", bins)
    texts = list(pairs)
    stream = Stream(model, encoded(tokenizer, texts))
    by_place = self_attention_values(stream, len(texts))
    by: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for place, found in zip(PLACES, by_place, strict=True):
        known = np.flatnonzero(~np.isnan(found))
        order = known[np.argsort(found[known], kind="stable")]
        numbers = np.full(len(found), -1)
        numbers[order] = np.arange(len(order)) * bins // max(len(order), 1)
        by[f"off-diagonality, {place}"] = found, numbers
    skipped = int(np.isnan(by_place).all(0).sum())
    if skipped == len(texts):
        raise ValueError("This model has no self-attention with weights.")
    rows = bin_scores(systems, texts, by, samples, seed, tokenize)
    sentences = len(texts) - skipped
    return Table.of("bleu-by-off-diagonality", rows, sentences, skipped)


def self_attention_values(stream: Stream, count: int) -> np.ndarray:
    """Off-diagonality in encoder and decoder, `[2, count]`; NaN if unknown."""
    values = np.full((2, count), np.nan)
    for batch in stream:
        for row, place in zip(values, PLACES, strict=True):
            layers = [layer for layer in batch.layers if layer.place == place]
            if layers:
                heads = np.concatenate([sentence_shares(x) for x in layers], axis=1)
                known = (~np.isnan(heads)).sum(1)
                mean = np.nansum(heads, 1) / np.maximum(known, 1)
                row[batch.numbers] = np.where(known > 0, mean, np.nan)
    return values


def bin_scores(
    systems: Mapping[str, Translate],
    texts: Sequence[tuple[str, str]],
    by: Mapping[str, tuple[np.ndarray, np.ndarray]],
    samples: int,
    seed: int,
    tokenize: str,
) -> Iterator[BinScore]:
    """A row for each bin that has sentences, and each system.

    Args:
        systems, samples, seed, tokenize: see `bleu_by_length`.
        texts: sources and references.
        by: for each quantity, its values for the sentences, `[n]`, and the numbers of
            their bins, int `[n]`; -1 for no bin.

    Raises:
        ValueError: see `bleu_by_length`.
    """
    if not systems:
        raise ValueError("`systems` must name at least one system. Received: none")
    if not texts:
        raise ValueError("There is no sentence to translate.")
    check_tokenizer(tokenize)
    check_integer("samples", samples)
    metric = BLEU(tokenize=tokenize)
    sources, references = map(list, zip(*texts, strict=True))
    counts = [
        sentence_statistics(metric, timed(translate, sources)[1], [references])
        for translate in systems.values()
    ]
    for name, (values, bins) in by.items():
        for number in sorted(set(bins[bins >= 0].tolist())):
            chosen = bins == number
            inside = values[chosen].min(), values[chosen].max(), chosen.sum()
            own = [found[chosen] for found in counts]
            whole = [score_of_statistics(metric, found.sum(0)) for found in own]
            drawn = np.transpose([resampled(metric, x, samples, seed) for x in own])
            limits = percentiles(drawn)
            differences = percentiles(drawn - drawn[:, :1])
            for index, system in enumerate(systems):
                change: tuple[Any, ...] = (None, None, None)
                if index:
                    change = whole[index] - whole[0], *differences[index]
                yield BinScore(
                    name, *inside, system, whole[index], *limits[index], *change
                )


def percentiles(values: np.ndarray) -> np.ndarray:
    """95 % intervals `[systems, 2]` of values `[samples, systems]`."""
    return np.percentile(values, (2.5, 97.5), axis=0).T
