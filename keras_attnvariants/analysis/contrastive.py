"""Preference of a model for right translations over wrong ones, by kind of mistake."""

import math
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Iterator
from os.path import commonprefix
from statistics import NormalDist
from typing import Any
from typing import NamedTuple

import numpy as np

from keras_attnvariants.analysis.contrastive_files import ContrastivePair
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.decoding import Translator
from keras_attnvariants.utils.chunks import chunks

CHUNK = 512
# As in You et al. 2020, Fig. 5; larger distances share one bin.
LONGEST = 15
SCORES = ("sum", "mean")
SUBJECT_VERB = ("subj-verb-agreement", "subj_verb_agreement")


class CategoryAccuracy(NamedTuple):
    """Accuracy in one category: the share of pairs whose reference is preferred.

    Attributes:
        category: kind of mistake in the other translation.
        pairs: number of pairs.
        right: number of pairs in which the reference scores strictly better.
        accuracy: `100 * right / pairs`.
        low, high: its 95 % interval (Wilson 1927).
        score: the scores that are compared: the `"sum"` of the log probabilities of
            tokens and EOS, which prefers short sentences, or their `"mean"`.
    """

    category: str
    pairs: int
    right: int
    accuracy: float
    low: float
    high: float
    score: str


def contrastive_accuracy(
    model: Any, tokenizer: Any, pairs: Iterable[ContrastivePair]
) -> Table:
    """The share of references that a model prefers to contrastive translations.

    A pair is right if the log probability of its reference, the sum over tokens and
    EOS, is strictly greater (Sennrich 2017; You et al. 2020, Table 4). Accuracies by
    means over tokens are reported as well.

    Args:
        model: a step model that can be called, such as a `Transformer`.
        tokenizer: its tokenizer.
        pairs: see `read_contrastive`; read once.

    Returns:
        A `CategoryAccuracy` for each category, in order of appearance, by sums and by
        means.

    Raises:
        ValueError: there are no pairs.
    """
    found = judged(model, tokenizer, pairs)
    counts = tallied(((pair.category, name), right) for pair, name, right in found)
    rows = [CategoryAccuracy(key[0], *count, key[1]) for key, count in counts.items()]
    rows.sort(key=lambda row: SCORES.index(row.score))
    return Table.of("contrastive", rows, sum(row.pairs for row in rows) // 2)


class DistanceAccuracy(NamedTuple):
    """Accuracy of agreement at one distance.

    Attributes:
        measure: kind of `distance`: the annotated `"distance"` between the two words
            that agree, or, without annotation, the `"position of the changed word"` in
            its sentence, from 1, as a substitute.
        distance: in words; 16 for all above 15.
        pairs, right, accuracy, low, high, score: see `CategoryAccuracy`.
    """

    measure: str
    distance: int
    pairs: int
    right: int
    accuracy: float
    low: float
    high: float
    score: str


def agreement_by_distance(
    model: Any,
    tokenizer: Any,
    pairs: Iterable[ContrastivePair],
    categories: tuple[str, ...] = SUBJECT_VERB,
) -> Table:
    """The accuracy of agreement by distance (You et al. 2020, Fig. 5).

    Args:
        model, tokenizer, pairs: see `contrastive_accuracy`.
        categories: prefixes of the names of the categories to count.

    Returns:
        A `DistanceAccuracy` for each distance from 1 to 15, and one for larger ones, by
        sums and by means.

    Raises:
        ValueError: there are no pairs of these categories.
    """
    chosen = (pair for pair in pairs if pair.category.startswith(categories))
    found = judged(model, tokenizer, chosen)
    counts = tallied(((*measured(pair), name), right) for pair, name, right in found)
    rows = [
        DistanceAccuracy(measure, distance, *count, name)
        for (measure, distance, name), count in sorted(counts.items())
    ]
    return Table.of("agreement", rows, sum(row.pairs for row in rows) // 2)


def measured(pair: ContrastivePair) -> tuple[str, int]:
    """The kind of distance of a pair and its bin, as `DistanceAccuracy` has them."""
    measure, distance = "distance", pair.distance
    if distance is None:
        measure = "position of the changed word"
        distance = changed_word(pair.reference, pair.contrastive)
    return measure, min(distance, LONGEST + 1)


def tallied(
    answers: Iterable[tuple[Hashable, bool]],
) -> dict[Any, tuple[int, int, float, float, float]]:
    """Number of pairs, number and share of right ones, and interval, by key.

    Raises:
        ValueError: there are no pairs.
    """
    counts: dict[Hashable, list[int]] = {}
    for key, is_right in answers:
        counts.setdefault(key, [0, 0])[is_right] += 1
    if not counts:
        raise ValueError("There are no contrastive pairs to judge.")
    return {
        key: (wrong + right, right, *percent(right, wrong + right))
        for key, (wrong, right) in counts.items()
    }


def judged(
    model: Any, tokenizer: Any, pairs: Iterable[ContrastivePair]
) -> Iterator[tuple[ContrastivePair, str, bool]]:
    """The pairs, and whether the model prefers their references by each score."""
    # Without XLA: compiling for every shape takes longer than scoring.
    score = Translator(model, tokenizer, xla=False).score
    for chunk in chunks(pairs, CHUNK):
        targets = [pair.reference for pair in chunk]
        targets += [pair.contrastive for pair in chunk]
        log_probs, counts = score([pair.source for pair in chunk] * 2, targets)
        for name, values in zip(SCORES, (log_probs, log_probs / counts), strict=True):
            right, wrong = np.split(values, 2)
            for pair, is_right in zip(chunk, (right > wrong).tolist(), strict=True):
                yield pair, name, is_right


def changed_word(reference: str, contrastive: str) -> int:
    """The position of the first word that differs, from 1."""
    return len(commonprefix([reference.split(), contrastive.split()])) + 1


def percent(right: int, total: int) -> tuple[float, float, float]:
    """A share in percent with its 95 % interval, after Wilson (1927).

    >>> [round(x, 1) for x in percent(8, 10)]
    [80.0, 49.0, 94.3]
    """
    z = NormalDist().inv_cdf(0.975)
    share, scale = right / total, 1 + z**2 / total
    middle = (share + z**2 / (2 * total)) / scale
    reach = z / scale * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    low, high = max(middle - reach, 0.0), min(middle + reach, 1.0)
    return 100 * share, 100 * low, 100 * high
