"""SentencePiece models: reordering of their pieces, and two models in one file."""

from __future__ import annotations

import re
from collections.abc import Collection
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

# SentencePiece writes this for a space; every sentence begins with one.
SPACE = "▁"
# Pieces for PAD, UNK, BOS and EOS, in the order of their ids.
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
# SentencePiece scores an unknown character this much below any piece.
UNKNOWN_PENALTY = 10.0
# Target language as the first word of OPUS-MT sources.
_LANGUAGE = re.compile(r">>.+<<")


def read(model_bytes: bytes) -> Any:
    """The protobuf of a SentencePiece model.

    Raises:
        ValueError: it is not one, or has no pieces.
    """
    model = _parsed(model_bytes)
    # Pieces come first in a file: a truncated one lacks these fields.
    is_whole = model.HasField("trainer_spec") and model.HasField("normalizer_spec")
    if not (model.pieces and is_whole):
        raise ValueError(
            "The file must be a SentencePiece model, and a whole one. Received: "
            f"{len(model_bytes)} bytes beginning {model_bytes[:16]!r}"
        )
    return model


def joined(source: bytes, target: bytes) -> bytes:
    """One file with the SentencePiece models of sources and targets.

    Other programs read the source model from it. Concatenated messages are one message.
    """
    return source if source == target else source + _held(target)


def parts(model_bytes: bytes) -> tuple[bytes, bytes | None]:
    """The models that `joined` was given; `None` for targets if there is one for both.

    Bytes that are no SentencePiece model are returned unchanged.
    """
    target = _parsed(model_bytes).target
    if not target:
        return model_bytes, None
    return model_bytes.removesuffix(_held(target)), target


def _parsed(model_bytes: bytes) -> Any:
    """The protobuf of a file; empty if the file is something else."""
    from google.protobuf.message import DecodeError

    model = _messages().ModelProto()
    try:
        model.ParseFromString(model_bytes)
    except DecodeError:
        model.Clear()
    return model


def _held(target: bytes) -> bytes:
    """The fields of a file that hold the model of targets."""
    held = _messages().ModelProto(target=target, target_size=len(target))
    return bytes(held.SerializePartialToString())


def ordinary_pieces(model_bytes: bytes) -> dict[str, Any]:
    """The pieces of a SentencePiece model that texts are split into, by their text.

    Raises:
        ValueError: as `read`.
    """
    kinds = _messages().Piece
    ordinary = (kinds.NORMAL, kinds.USER_DEFINED, kinds.BYTE)
    return {x.piece: x for x in read(model_bytes).pieces if x.type in ordinary}


def with_pieces(
    model_bytes: bytes, pieces: Sequence[str], unused: Collection[str] = ()
) -> bytes:
    """A SentencePiece model with the ids of a vocabulary.

    It splits texts as before if all its pieces are in the vocabulary. Of the additional
    pieces, single characters are recognized where they were unknown, and longer ones
    never; decoding knows all of them. A language code that begins a text, such as
    `>>deu<<`, is one piece.

    Args:
        model_bytes: the model.
        pieces: all pieces in the order of their ids, `SPECIAL` first.
        unused: pieces of the model that it must not use.

    Raises:
        ValueError: the bytes are not a SentencePiece model.
    """
    model, kinds = read(model_bytes), _messages().Piece
    known = ordinary_pieces(model_bytes)
    lowest = min((x.score for x in known.values()), default=0.0) - UNKNOWN_PENALTY
    made = [kinds(piece=text, type="CONTROL") for text in SPECIAL]
    made[1].type = kinds.UNKNOWN
    trained = model.trainer_spec
    for text in pieces[len(SPECIAL) :]:
        if text in known and text not in unused:
            made.append(known[text])
        elif _LANGUAGE.fullmatch(text):
            made.append(kinds(piece=SPACE + text, type="USER_DEFINED"))
            trained.user_defined_symbols.append(SPACE + text)
        elif len(text) == 1 and text not in unused:
            # Other toolkits look up unknown text in the vocabulary.
            made.append(kinds(piece=text, score=lowest))
        else:
            made.append(kinds(piece=text, score=lowest, type="UNUSED"))
    trained.pad_piece, trained.unk_piece, trained.bos_piece, trained.eos_piece = SPECIAL
    trained.pad_id, trained.unk_id, trained.bos_id, trained.eos_id = range(4)
    trained.vocab_size = len(made)
    del model.pieces[:]
    model.pieces.extend(made)
    return bytes(model.SerializeToString())


def with_special_pieces_first(model_bytes: bytes) -> bytes:
    """A SentencePiece model whose special pieces have the ids of this package.

    Args:
        model_bytes: a model with any ids for them, or without some of them.

    Raises:
        ValueError: as `Tokenizer.adopt`.
    """
    model = read(model_bytes)
    trained = model.trainer_spec
    special = {trained.pad_id, trained.unk_id, trained.bos_id, trained.eos_id}
    others = [x.piece for i, x in enumerate(model.pieces) if i not in special]
    if taken := [text for text in SPECIAL if text in others]:
        raise ValueError(
            f"The SentencePiece model must have {taken[0]} as a special piece, or not "
            "at all. Received: it is an ordinary piece"
        )
    return with_pieces(model_bytes, [*SPECIAL, *others])


@cache
def _messages() -> Any:
    """The classes of the messages, made when a model is first read."""
    from keras_attnvariants.utils.protos import message_classes

    return message_classes(Path(__file__).with_name("sentencepiece.textproto"))
