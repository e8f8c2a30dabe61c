"""Converts vocabularies of other toolkits to the ids of this package."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_attnvariants.data import sentencepiece_models

# Logit that makes a token improbable. It is finite, for label smoothing and 8 bits.
NEVER = -100.0


@dataclass(frozen=True)
class ForeignVocabulary:
    """Tokens of one side of a model, or of both.

    Attributes:
        tokens: in the order of their ids.
        unknown, end: tokens for unknown characters and for the end of a sentence.
        padding: token for padding; `None` if there is none.
        start: token that begins a target; `None` if that is a vector of zeros.
    """

    tokens: Sequence[str]
    unknown: str = "<unk>"
    end: str = "</s>"
    padding: str | None = None
    start: str | None = None

    def __post_init__(self) -> None:
        for token in {self.unknown, self.end, self.padding, self.start} - {None}:
            if token not in self.tokens:
                raise ValueError(
                    f"The vocabulary must have the token {token}. Received: "
                    f"{len(self.tokens):,} tokens without it"
                )

    def adopted(self, models: Sequence[bytes]) -> "AdoptedVocabulary":
        """The vocabulary with special tokens as in this package.

        Args:
            models: SentencePiece models that split texts into these tokens. Each piece
                that is not a token becomes a new one: a copy of the unknown token,
                which is never predicted itself.

        Raises:
            ValueError: one is not a SentencePiece model, or has no piece among the
                tokens.
        """
        known = {token: number for number, token in enumerate(self.tokens)}
        special = {self.unknown, self.end, self.padding}
        others = [token for token in self.tokens if token not in special]
        missing: dict[str, None] = {}
        for model in models:
            pieces = sentencepiece_models.ordinary_pieces(model)
            if not known.keys() & pieces:
                raise ValueError(
                    "The vocabulary must have pieces of the SentencePiece model beside "
                    f"it. Received: {len(pieces):,} pieces, none of which it has"
                )
            missing |= dict.fromkeys(p for p in pieces if p not in known)
        start = -1 if self.start is None else known[self.start]
        unknown, end = known[self.unknown], known[self.end]
        kept = [known[token] for token in others]
        # A start token that is also padding can be predicted.
        predicted = start if self.start == self.padding else -1
        return AdoptedVocabulary(
            # Renamed, so that they are not taken for our special pieces.
            pieces=[
                *sentencepiece_models.SPECIAL,
                *(f"<{x}>" if x in sentencepiece_models.SPECIAL else x for x in others),
                *missing,
            ],
            missing=frozenset(missing),
            rows=np.array([-1, unknown, start, end, *kept, *[unknown] * len(missing)]),
            logits=np.array([-1, unknown, predicted, end, *kept, *[-1] * len(missing)]),
        )


@dataclass(frozen=True)
class AdoptedVocabulary:
    """Tokens in the order of the ids of this package.

    Attributes:
        pieces: the tokens.
        missing: pieces of a SentencePiece model that were not tokens.
        rows: the original id of each token; -1 for none.
        logits: the original id of each token that is predicted; -1 for the others.
    """

    pieces: list[str]
    missing: frozenset[str]
    rows: np.ndarray
    logits: np.ndarray

    def table(self, theirs: np.ndarray) -> np.ndarray:
        """Embeddings `[V, width]`, zeros for tokens without a row."""
        zero = np.zeros_like(theirs[:1])
        return np.concatenate([theirs, zero])[self.rows]

    def bias(self, theirs: np.ndarray) -> np.ndarray:
        """The bias of logits `[V]`."""
        return np.append(theirs, NEVER)[self.logits]


def tokens_by_number(found: Any, path: Path) -> list[str]:
    """The tokens of a vocabulary in the order of their numbers.

    Args:
        found: numbers, which may be texts, by token.
        path: their file.

    Raises:
        ValueError: it is something else, or numbers are missing.
    """
    try:
        numbers = {token: int(number) for token, number in found.items()}
    except (AttributeError, TypeError, ValueError):
        numbers = {}
    if not numbers or sorted(numbers.values()) != list(range(len(numbers))):
        raise ValueError(
            f"{path.name} must give each token a number, from 0 on. Received: {path}"
        )
    return sorted(numbers, key=numbers.__getitem__)
