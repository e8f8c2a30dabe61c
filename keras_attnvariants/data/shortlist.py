"""Vocabulary shortlists: the target tokens that a source makes likely.

A lexical model (Brown et al. 1993, IBM model 1) is estimated on a parallel corpus in
one array of co-occurrences, chunk by chunk. Jean et al. (2015, section 3.2) limit the
vocabulary of a sentence to what such a model proposes, and the most frequent tokens.
"""

import contextlib
import os
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.chunks import chunks
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_npz

# A sentence as the ids of its tokens.
Sentence = Sequence[int]

# Sentence pairs whose co-occurrences are in memory at once, before they are summed.
CHUNK = 2_000
# Maximum number of chunks before they are merged.
MAX_PARTS = 32


@dataclass(frozen=True)
class Shortlist:
    """The target tokens that translations may have, by the tokens of their source.

    Attributes:
        common: int32 `[C]`, tokens that every translation may have, the most frequent
            ones first.
        by_source: int32 `[source vocabulary, n]`, for each source token the tokens it
            is most likely translated to, best first; -1 where there are fewer.

    Example:

    >>> pairs = [([5, 6], [8, 9]), ([5], [8]), ([6], [9])]
    >>> shortlist = Shortlist.learn(pairs, 10, 10, candidates=1)
    >>> shortlist.by_source[5].tolist(), shortlist.by_source[6].tolist()
    ([8], [9])
    """

    common: np.ndarray
    by_source: np.ndarray

    @classmethod
    def learn(
        cls,
        pairs: Iterable[tuple[Sentence, Sentence]],
        source_vocabulary_size: int,
        vocabulary_size: int,
        candidates: int = 50,
        common: int = 200,
        iterations: int = 3,
    ) -> "Shortlist":
        """Learns the shortlist of a parallel corpus.

        Memory grows by 16 bytes for each distinct pair of a source and a target token
        in the same sentence pair.

        Args:
            pairs: ids of the tokens of sources and targets, without special tokens. It
                is read several times, so it cannot be a generator.
            source_vocabulary_size, vocabulary_size: numbers of tokens.
            candidates: maximum number of tokens for each source token.
            common: number of frequent tokens for all translations.
            iterations: number of iterations to estimate the lexical model.

        Raises:
            ValueError: a size is out of range, or there are no pairs.
        """
        for name, value in (("candidates", candidates), ("iterations", iterations)):
            check_integer(name, value)
        check_integer("common", common, minimum=0)
        keys, weights = lexical_model(pairs, vocabulary_size, iterations)
        if not len(keys):
            raise ValueError("`pairs` must have tokens. Received: none")
        # Each target token of a pair is divided among the tokens of its source.
        shares = np.bincount(keys % vocabulary_size, weights, vocabulary_size)
        counts = np.rint(shares)
        frequent = np.argsort(-counts, kind="stable")[:common]
        sources, targets = np.divmod(keys, vocabulary_size)
        order = np.lexsort((targets, -weights, sources))
        sources, targets = sources[order], targets[order]
        ranks = np.arange(len(order)) - np.searchsorted(sources, sources)
        columns = min(candidates, ranks.max() + 1)
        best = np.full((source_vocabulary_size, columns), -1, "int32")
        is_best = ranks < columns
        best[sources[is_best], ranks[is_best]] = targets[is_best]
        return cls(frequent[counts[frequent] > 0].astype("int32"), best)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the shortlist as an `.npz` file."""
        with Path(path).open("wb") as file:
            np.savez_compressed(file, common=self.common, by_source=self.by_source)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Shortlist":
        """The shortlist in a file that `save` wrote.

        Raises:
            ValueError: the file holds something else.
        """
        with contextlib.suppress(KeyError, DamagedFolderError):
            arrays = read_npz(Path(path).resolve())
            found = cls(arrays["common"], arrays["by_source"])
            is_whole = {"i"} == {found.common.dtype.kind, found.by_source.dtype.kind}
            if is_whole and (found.common.ndim, found.by_source.ndim) == (1, 2):
                return found
        raise ValueError(f"{path} is not a shortlist as `Shortlist.save` writes it.")

    def check(self, source_vocabulary_size: int, vocabulary_size: int) -> None:
        """Raises `ValueError` unless the shortlist fits the vocabularies."""
        largest = max(self.common.max(initial=-1), self.by_source.max(initial=-1))
        if len(self.by_source) != source_vocabulary_size or largest >= vocabulary_size:
            raise ValueError(
                "The shortlist must fit the vocabularies of the model "
                f"({source_vocabulary_size} source and {vocabulary_size} target "
                f"tokens). Received: {len(self.by_source)} source tokens, target "
                f"tokens up to {largest}"
            )


def lexical_model(
    pairs: Iterable[tuple[Sentence, Sentence]], vocabulary_size: int, iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    """Expected counts of a source token being translated to a target token.

    Args:
        pairs: see `Shortlist.learn`.
        vocabulary_size: number of target tokens, `V`.
        iterations: steps of expectation maximization, from uniform probabilities.

    Returns:
        Keys, int64 `[N]` in ascending order, `source * V + target`; and their counts,
        float64 `[N]`.
    """
    parts: list[np.ndarray] = [np.zeros(0, "int64")]
    for chunk in chunks(pairs, CHUNK):
        parts.append(np.unique(co_occurrences(chunk, vocabulary_size)[0]))
        if len(parts) > MAX_PARTS:
            parts = [np.unique(np.concatenate(parts))]
    keys = np.unique(np.concatenate(parts))
    sources, probabilities = keys // vocabulary_size, np.ones(len(keys))
    for _ in range(iterations):
        weights = np.zeros(len(keys))
        for chunk in chunks(pairs, CHUNK):
            links, columns = co_occurrences(chunk, vocabulary_size)
            places = np.searchsorted(keys, links)
            shares = probabilities[places]
            totals = np.bincount(columns, shares)
            np.add.at(weights, places, shares / totals[columns])
        probabilities = weights / np.bincount(sources, weights)[sources]
    return keys, weights


def co_occurrences(
    chunk: Sequence[tuple[Sentence, Sentence]], vocabulary_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a source and a target token in the same sentence pair.

    Returns:
        The keys `source * V + target`, int64 `[N]`, and the target position in the
        chunk that each belongs to, int64 `[N]`.
    """
    links, columns, start = [np.zeros(0, "int64")], [np.zeros(0, "int64")], 0
    for source, target in chunk:
        rows = np.asarray(source, "int64") * vocabulary_size
        links.append(np.add.outer(np.asarray(target, "int64"), rows).ravel())
        positions = np.arange(start, start + len(target))
        columns.append(np.repeat(positions, len(source)))
        start += len(target)
    return np.concatenate(links), np.concatenate(columns)
