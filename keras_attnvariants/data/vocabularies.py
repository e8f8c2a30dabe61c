"""Vocabularies of subwords, learned by SentencePiece once for each corpus."""

from __future__ import annotations

import io
import os
import sys
import unicodedata
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from keras_attnvariants.data import tasks
from keras_attnvariants.data.corpora import Corpus
from keras_attnvariants.data.sentencepiece_models import SPACE
from keras_attnvariants.data.text_files import check_text_file
from keras_attnvariants.data.text_files import fingerprint
from keras_attnvariants.data.text_files import read_text_lines
from keras_attnvariants.data.tokenizer import BOS_ID
from keras_attnvariants.data.tokenizer import EOS_ID
from keras_attnvariants.data.tokenizer import PAD_ID
from keras_attnvariants.data.tokenizer import UNK_ID
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.utils.caches import cached_folder
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import listed
from keras_attnvariants.utils.folders import FolderWriter

# Options of all vocabularies of this package; log level 2 is for errors only.
_OPTIONS: dict[str, Any] = {
    "byte_fallback": False,
    "max_sentence_length": 1 << 16,
    # Threads sum separately, so their number changes the result.
    "num_threads": 4,
    "pad_id": PAD_ID,
    "unk_id": UNK_ID,
    "bos_id": BOS_ID,
    "eos_id": EOS_ID,
    "minloglevel": 2,
    # A text may have fewer pieces: then the caller learns how many.
    "hard_vocab_limit": False,
}
FILE = "tokenizer.model"


def check_tag(tag: str) -> str:
    """Returns a word that can be kept as one piece.

    Raises:
        ValueError: If it is empty, has spaces, or has characters that SentencePiece
            would change or that separate its options.
    """
    is_word = bool(tag) and tag.isprintable() and tag.split() == [tag]
    unchanged = unicodedata.normalize("NFKC", tag) == tag
    if not is_word or not unchanged or SPACE in tag or "," in tag:
        raise ValueError(
            "A tag must be one word without a comma, such as '<2de>'. "
            f"Received: {tag!r}"
        )
    return tag


def sentences_of(inputs: Iterable[Path | str]) -> Iterator[str]:
    """The non-empty sentences of texts, and of files with one sentence per line."""
    for item in inputs:
        lines = [item] if isinstance(item, str) else read_text_lines(item)
        yield from (line for line in lines if line.strip())


def learn_subwords(
    files_or_texts: Iterable[os.PathLike[str] | str],
    vocabulary_size: int,
    model_type: str,
    character_coverage: float,
    max_sentences: int,
    tags: Sequence[str],
) -> bytes:
    """A SentencePiece model, with fewer pieces if the text has no more.

    See `Tokenizer.train` for arguments and errors.
    """
    # Late: training on batches of ids does not need it.
    import sentencepiece

    # The four special pieces and one more.
    check_integer("vocabulary_size", vocabulary_size, minimum=EOS_ID + 2)
    check_choice("model_type", model_type, ("unigram", "bpe"))
    kinds = "`pathlib.Path` for files, or of `str` for sentences"
    given = listed("files_or_texts", files_or_texts, kinds)
    inputs = [item if isinstance(item, str) else Path(item) for item in given]
    for item in inputs:
        if isinstance(item, Path):
            check_text_file(item, max_invalid=0)
    count = sum(1 for _ in sentences_of(inputs))
    if count == 0:
        raise ValueError(
            f"`files_or_texts` holds no sentence to learn from. Received: {inputs}"
        )
    # An empty list would be a list of one empty symbol.
    symbols = [SPACE + check_tag(tag) for tag in tags]
    model = io.BytesIO()
    sentences = islice(sentences_of(inputs), 0, None, -(-count // max_sentences))
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences,
            model_writer=model,
            vocab_size=vocabulary_size,
            model_type=model_type,
            character_coverage=character_coverage,
            **_OPTIONS | ({"user_defined_symbols": symbols} if symbols else {}),
        )
    except RuntimeError as error:
        raise ValueError(
            f"SentencePiece cannot learn this vocabulary ({str(error).strip()}). "
            f"Received: vocabulary_size={vocabulary_size}, {count} sentences"
        ) from error
    return model.getvalue()


def check_size(tokenizer: Tokenizer, vocabulary_size: int) -> None:
    """Raises `ValueError` if a vocabulary has fewer tokens than were asked for."""
    if (found := tokenizer.vocabulary_size) < vocabulary_size:
        raise ValueError(
            "The text is too small: set `vocabulary_size` (--vocabulary-size) "
            f"to at most {found}. Received: vocabulary_size={vocabulary_size}"
        )


def learn_vocabulary(
    corpus: Corpus, vocabulary_size: int, *, may_shrink: bool = False, **options: Any
) -> Tokenizer:
    """Returns the vocabulary of the training split, from the cache if possible.

    It includes the tags of the corpus. It is stored beside the cleaned corpus, under a
    digest of its files, the options and SentencePiece's version.

    Args:
        corpus: Has a split "train".
        vocabulary_size, may_shrink: As for `Tokenizer.train`. A line on standard error
            names the size of a vocabulary that was made smaller.
        **options: Further arguments of `Tokenizer.train`.

    Raises:
        ValueError: As `Tokenizer.train`, or the corpus has no split "train".
    """
    import sentencepiece

    files = corpus.files("train")[0 if tasks.get(corpus.task).reads_text else 1 :]
    if corpus.tags:
        options["tags"] = corpus.tags
    key = fingerprint(files, sentencepiece.__version__, vocabulary_size, options)

    def write(folder: FolderWriter) -> None:
        tokenizer = Tokenizer.train(files, vocabulary_size, may_shrink=True, **options)
        folder.write_bytes(FILE, tokenizer.model_bytes)

    folder = cached_folder(corpus.folder / "vocabularies" / key, write)
    tokenizer = Tokenizer.load(folder / FILE)
    if not may_shrink:
        check_size(tokenizer, vocabulary_size)
    if (found := tokenizer.vocabulary_size) < vocabulary_size:
        print(
            f"The vocabulary has {found:,} tokens instead of {vocabulary_size:,}: the "
            "training text has no more.",
            file=sys.stderr,
        )
    return tokenizer
