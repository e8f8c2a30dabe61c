"""What translating texts returns."""

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np

from keras_attnvariants.decoding.text_encoder import TextTokenizer


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
    rows = [
        row[:length].tolist()
        for row, length in zip(ids[exists], lengths[exists], strict=True)
    ]
    texts = tokenizer.decode([row[:-1] for row in rows])
    columns: list[Sequence[Any]] = [
        texts,
        scores[exists].tolist(),
        log_probs[exists].tolist(),
    ]
    if gains is not None:
        columns.append([tuple(row) for row in rows])
        columns.append(
            [
                tuple(row[:length].tolist())
                for row, length in zip(gains[exists], lengths[exists], strict=True)
            ]
        )
    found: Iterator[Translation] = map(Translation, *columns)
    return [[next(found) for _ in range(count)] for count in exists.sum(axis=1)]
