"""The results of an exported model in Python, sentence by sentence."""

from collections.abc import Iterator
from collections.abc import Mapping
from enum import IntEnum
from typing import Any
from typing import NamedTuple

import numpy as np

from keras_attnvariants.serving.calls import Array

# The score of a translation that was not found: `decoding.IMPOSSIBLE`, without Keras.
MISSING = -1e30


class Status(IntEnum):
    """Codes of the output `status`; `STATUS_DOCS` explains them.

    A server merges the requests of many clients. So a sentence that cannot be
    translated must not fail the others: it has an empty translation and a status of
    its own.
    """

    OK = 0
    WRONG_LENGTH = 1
    UNKNOWN_ID = 2
    PADDING_INSIDE = 3
    NOTHING_FOUND = 4
    WRONG_OPTION = 5


STATUS_DOCS = {
    Status.OK: "translated; an empty text has an empty translation",
    Status.WRONG_LENGTH: "its entry of `lengths` is negative or above the width of "
    "`source_ids`",
    Status.UNKNOWN_ID: "an id within its length is not in the vocabulary",
    Status.PADDING_INSIDE: "an id within its length is that of padding",
    Status.NOTHING_FOUND: "the search found no translation",
    Status.WRONG_OPTION: "an option is out of range, or excludes another",
}


class SavedTranslation(NamedTuple):
    """One translation of a text; what its signature does not return is left empty.

    Attributes:
        text: the translation.
        score: log probability after length normalization.
        log_prob: log probability of the tokens and EOS.
        pieces: the tokens, EOS among them.
        token_log_probs: their log probabilities; their sum is `log_prob`.
        source_pieces: the tokens of the source.
        alignment: attention of each token to each of the source, float32
            `[len(pieces), len(source_pieces)]`.
        truncated: whether a limit of the export cut the source.
        status: why there is no translation, if there is none.
    """

    text: str
    score: float
    log_prob: float | None = None
    pieces: tuple[str, ...] = ()
    token_log_probs: tuple[float, ...] = ()
    source_pieces: tuple[str, ...] = ()
    alignment: Array | None = None
    truncated: bool = False
    status: Status = Status.OK


class TargetScore(NamedTuple):
    """How probable a target is as a translation of its source.

    Attributes:
        log_prob: of its tokens and EOS.
        pieces: its tokens, EOS among them.
        token_log_probs: their log probabilities.
        truncated: whether a limit of the export cut source or target.
    """

    log_prob: float
    pieces: tuple[str, ...]
    token_log_probs: tuple[float, ...]
    truncated: bool


def rows_of(found: Mapping[str, Array]) -> Iterator[dict[str, Any]]:
    """The outputs of a signature for one sentence after another."""
    for row in zip(*found.values(), strict=True):
        yield dict(zip(found, row, strict=True))


def translation(row: Mapping[str, Any]) -> SavedTranslation:
    """The one translation in the outputs for a sentence."""
    pieces = [piece for piece in row.get("pieces", ()) if piece]
    source = [piece for piece in row.get("source_pieces", ()) if piece]
    weights = row.get("alignments")
    log_probs = row.get("token_log_probs", np.zeros(0))
    return SavedTranslation(
        text=row["translations"],
        score=float(row["scores"]),
        log_prob=float(row["log_probs"]) if "log_probs" in row else None,
        pieces=tuple(pieces),
        token_log_probs=tuple(log_probs[: len(pieces)].tolist()),
        source_pieces=tuple(source),
        alignment=None if weights is None else weights[: len(pieces), : len(source)],
        truncated=bool(row["truncated"]),
        status=Status(row["status"]),
    )


def several(row: Mapping[str, Any]) -> list[SavedTranslation]:
    """The translations in the outputs of `nbest` for a sentence, best first."""
    texts, scores = row["translations"], row["scores"]
    parts = zip(texts, scores, strict=True)
    return [
        translation({**row, "translations": text, "scores": score})
        for text, score in parts
        if score > MISSING
    ]


def target_score(row: Mapping[str, Any]) -> TargetScore:
    """What `score` returns for a sentence."""
    length = int(row["lengths"])
    return TargetScore(
        log_prob=float(row["log_probs"]),
        pieces=tuple(row["pieces"][:length]),
        token_log_probs=tuple(row["token_log_probs"][:length].tolist()),
        truncated=bool(row["truncated"]),
    )


def decoded(array: Array) -> Array:
    """An output; texts as strings."""
    if array.dtype != object:
        return array
    texts = np.empty(array.size, object)
    texts[:] = [text.decode("utf-8") for text in array.ravel()]
    return texts.reshape(array.shape)
