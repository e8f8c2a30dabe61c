"""Subword vocabularies: SentencePiece with the package's fixed special ids."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_attnvariants.data import sentencepiece_models
from keras_attnvariants.data.sentencepiece_models import SPACE
from keras_attnvariants.data.text_files import read_text_lines
from keras_attnvariants.utils.checks import listed
from keras_attnvariants.utils.chunks import chunks
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.importing import import_tensorflow_text
from keras_attnvariants.utils.lines import well_formed

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
_LINES_PER_BLOCK = 4096


class Tokenizer:
    """Encodes text as subword ids and decodes them, with a SentencePiece model.

    There may be a second model for targets: then `encode`, `split` and `pieces` are for
    sources, `decode` is for targets, and `target` is the tokenizer of targets.

    The special ids are the same in every model of this package: padding 0,
    unknown 1, beginning of sentence 2, end of sentence 3. `encode` adds none
    of them, and `decode` drops padding, beginning and end.

    Args:
        model_bytes: A serialized SentencePiece model with those special ids, or two,
            see `for_sides`.

    Attributes:
        pad_id: Id of padding, which fills rows on the right.
        unk_id: Id of text that the vocabulary does not cover.
        bos_id: Id that begins a target sentence.
        eos_id: Id that ends a target sentence.
        source_stride: Number of ids per encoder position.
        reads: Kind of its sources, `"text"`.

    Raises:
        TypeError: If `model_bytes` is not `bytes`.
        ValueError: If the bytes are not a SentencePiece model, or the model has
            other special ids.

    Example:

    >>> from keras_attnvariants.data import Tokenizer
    >>> texts = ["a small house", "the small mouse", "a house for the mouse"]
    >>> tokenizer = Tokenizer.train(texts, vocabulary_size=18)
    >>> tokenizer.decode(tokenizer.encode(["the small house"]))
    ['the small house']
    """

    pad_id, unk_id, bos_id, eos_id = PAD_ID, UNK_ID, BOS_ID, EOS_ID
    source_stride = 1
    reads = "text"

    def __init__(self, model_bytes: bytes) -> None:
        if not isinstance(model_bytes, bytes):
            raise TypeError(
                "`model_bytes` must be the bytes of a SentencePiece model. "
                f"Received: {type(model_bytes).__name__}"
            )
        # Late: training on batches of ids does not need it.
        import sentencepiece

        self.model_bytes = model_bytes
        self._own_bytes, target = sentencepiece_models.parts(model_bytes)
        self._target = None if target is None else Tokenizer(target)
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(self._own_bytes)
        except (RuntimeError, OSError) as error:
            raise ValueError(
                "`model_bytes` is not a SentencePiece model. "
                f"Received: {len(model_bytes)} bytes beginning {model_bytes[:16]!r}"
            ) from error
        read = self._processor
        found = read.pad_id(), read.unk_id(), read.bos_id(), read.eos_id()
        if found != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
            raise ValueError(
                "The SentencePiece model must have been trained with pad 0, unk 1, "
                "bos 2 and eos 3 (`Tokenizer.train` does so). "
                f"Received: (pad, unk, bos, eos) = {found}"
            )

    @classmethod
    def train(
        cls,
        files_or_texts: Iterable[os.PathLike[str] | str],
        vocabulary_size: int,
        model_type: str = "unigram",
        character_coverage: float = 1.0,
        max_sentences: int = 5_000_000,
        tags: Sequence[str] = (),
        may_shrink: bool = False,
    ) -> Tokenizer:
        """Learns a vocabulary; the same input always gives the same bytes.

        Args:
            files_or_texts: The text to learn from. `pathlib.Path` elements are UTF-8
                files with one sentence per line, `str` elements are sentences.
                For a joint vocabulary give the files of both languages.
            vocabulary_size: Number of pieces, the four special ones included.
            model_type: `"unigram"` (Kudo, 2018) or `"bpe"` (Sennrich et al., 2016).
            character_coverage: Share of the characters, by frequency, that get their
                own piece; the rest becomes unknown. 1.0 suits alphabets, 0.9995
                Japanese and Chinese.
            max_sentences: Maximum number of sentences to learn from. From a larger
                corpus, about as many are taken at equal intervals.
            tags: Words that are one piece each, whether or not they are in the text,
                such as the tags of `mix_corpora`.
            may_shrink: Whether the vocabulary may be smaller if the text has too few
                pieces.

        Returns:
            The trained `Tokenizer`.

        Raises:
            TypeError: If `files_or_texts` is a lone string.
            FileNotFoundError: If a file is missing.
            ValueError: If there is no text, a file is not UTF-8, an option is out of
                range, or the text is too small for the vocabulary.
        """
        # Late: that module imports this one.
        from keras_attnvariants.data.vocabularies import check_size
        from keras_attnvariants.data.vocabularies import learn_subwords

        options = model_type, character_coverage, max_sentences, tags
        tokenizer = cls(learn_subwords(files_or_texts, vocabulary_size, *options))
        if not may_shrink:
            check_size(tokenizer, vocabulary_size)
        return tokenizer

    @classmethod
    def load(cls, path_or_bytes: os.PathLike[str] | str | bytes) -> Tokenizer:
        """Reads a tokenizer from a `.model` file or from its bytes."""
        if isinstance(path_or_bytes, bytes):
            return cls(path_or_bytes)
        path = Path(path_or_bytes)
        if not path.is_file():
            raise FileNotFoundError(
                f"`path_or_bytes` must be the path of a tokenizer. Received: {path}"
            )
        return cls(path.read_bytes())

    @classmethod
    def adopt(cls, path_or_bytes: os.PathLike[str] | str | bytes) -> Tokenizer:
        """Makes a tokenizer from any SentencePiece model, such as another toolkit's.

        It splits texts into the same pieces, but with other ids: first padding,
        unknown, beginning and end, then the rest in its order.

        Args:
            path_or_bytes: A `.model` file, or its bytes. Special pieces that it lacks
                are added.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it is no SentencePiece model, or has an ordinary piece with
                the text of a special one that it lacks.
        """
        if not isinstance(path_or_bytes, bytes):
            path_or_bytes = Path(path_or_bytes).read_bytes()
        return cls(sentencepiece_models.with_special_pieces_first(path_or_bytes))

    @classmethod
    def for_sides(cls, source: bytes, target: bytes) -> Tokenizer:
        """Makes a tokenizer with separate models for sources and targets.

        Args:
            source, target: SentencePiece models as for the constructor.

        Raises:
            ValueError: As for the constructor.
        """
        return cls(sentencepiece_models.joined(source, target))

    def save(self, path: os.PathLike[str] | str) -> None:
        """Writes the SentencePiece model; the file appears whole or not at all."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, self.model_bytes)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the subword ids of each text, without BOS and EOS."""
        return self._processor.encode(_well_formed(texts))

    def encode_file(
        self, path: os.PathLike[str]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields the ids of some lines of a file, and their number in each line."""
        for block in chunks(read_text_lines(path), _LINES_PER_BLOCK):
            rows = self._processor.encode(block)
            ids = np.fromiter(itertools.chain.from_iterable(rows), np.int32)
            yield ids, np.array([len(row) for row in rows])

    def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns the pieces of each text, one for each id that `encode` returns.

        Unknown characters are separate pieces, and `▁` is a space.
        """
        return self._processor.encode(_well_formed(texts), out_type=str)

    def begins(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the position in each text at which each of its tokens begins.

        There is one position, in characters, for each id that `encode` returns. A token
        may begin with the space before its word.
        """
        found = self._processor.encode(
            _well_formed(texts), return_type="offset_mapping"
        )
        return [[begin for begin, _ in tokens["offsets"]] for tokens in found]

    def decode(self, ids: Iterable[Iterable[int]]) -> list[str]:
        """Returns the text of each row of ids; padding, BOS and EOS are dropped."""
        if self.target is not self:
            return self.target.decode(ids)
        texts = []
        for row in ids:
            kept = [int(i) for i in row if int(i) not in (PAD_ID, BOS_ID, EOS_ID)]
            if any(not 0 <= i < self.vocabulary_size for i in kept):
                raise ValueError(
                    f"`ids` must be in [0, {self.vocabulary_size}). Received: {kept}"
                )
            texts.append(self._processor.decode(kept))
        return texts

    @property
    def target(self) -> Tokenizer:
        """The tokenizer of targets: this one, unless there are two models."""
        return self._target or self

    @property
    def vocabulary_size(self) -> int:
        """Number of pieces, special ones included."""
        return self._processor.get_piece_size()

    @property
    def pieces(self) -> list[str]:
        """All pieces, in the order of their ids."""
        return [self._processor.id_to_piece(i) for i in range(self.vocabulary_size)]

    @property
    def tags(self) -> tuple[str, ...]:
        """Words that `train` was told to keep as one piece."""
        model = sentencepiece_models.read(self._own_bytes)
        symbols = model.trainer_spec.user_defined_symbols
        return tuple(symbol.removeprefix(SPACE) for symbol in symbols)

    @property
    def sha256(self) -> str:
        """Digest of the model: equal digests give equal ids."""
        return hashlib.sha256(self.model_bytes).hexdigest()

    def tf_tokenizer(self) -> Any:
        """Returns this tokenizer as a `tensorflow_text.SentencepieceTokenizer`.

        It maps strings `[B]` to a ragged int32 tensor without BOS and EOS, inside
        `tf.data` and inside a SavedModel. Call this again after
        `keras.utils.set_random_seed`, which makes TensorFlow forget it.

        Raises:
            ValueError: tensorflow-text is not installed.
        """
        import tensorflow as tf

        tensorflow_text = import_tensorflow_text()
        # In a graph, TensorFlow takes two of the same name for one.
        name = f"tokenizer_{self.sha256:.12}"
        return tensorflow_text.SentencepieceTokenizer(
            model=self._own_bytes, out_type=tf.int32, name=name
        )

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[bytes]]:
        return Tokenizer, (self.model_bytes,)

    def __repr__(self) -> str:
        return (
            f"Tokenizer(vocabulary_size={self.vocabulary_size}, "
            f"sha256={self.sha256[:12]}…)"
        )


def _well_formed(texts: Sequence[str]) -> list[str]:
    """The texts as UTF-8 can represent them."""
    return [well_formed(text) for text in listed("texts", texts)]
