"""Corpora of many files, made ready for training by many processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_attnvariants.beam import engine
from keras_attnvariants.beam.cleaning import BeamCleaner
from keras_attnvariants.data.corpora import load_corpus
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.data.vocabularies import learn_vocabulary
from keras_attnvariants.utils.checks import check_integer

if TYPE_CHECKING:
    from keras_attnvariants.data.pipeline import TokenizedCorpus


def prepare(
    folder: os.PathLike[str] | str,
    source_language: str,
    target_language: str,
    tokenizer: Tokenizer | int,
    *,
    workers: int = 1,
    options: Sequence[str] = (),
    **corpus_options: Any,
) -> TokenizedCorpus:
    """Cleans and tokenises a corpus with Beam, into the cache that training reads.

    The files are byte for byte those that `load_corpus` and `TokenizedCorpus` write in
    one process: a training that begins afterwards finds them. Batches need no
    preparation: a training plans them in seconds.

    Args:
        folder: Text files as for `load_corpus`; a split may be in shards, such as
            `train-00000-of-00010.en.gz`, and a worker takes a shard at a time.
        source_language: Language code as in the file names.
        target_language: Language code as in the file names.
        tokenizer: The tokenizer, or the size of the vocabulary to learn.
        workers: Processes on this machine.
        options: Options of Beam instead, such as `["--runner=FlinkRunner", …]`. All
            workers must see the folder and the cache under the same paths.
        **corpus_options: Further arguments of `load_corpus`, such as `unique=True` and
            `cache_dir`.

    Returns:
        The tokenised corpus. `kav.training.train_preset` takes its attribute `corpus`,
        and with the same `vocabulary_size` finds vocabulary and tokens in the cache.

    Raises:
        ValueError: If Beam is not installed, `folder` is no folder, `tokenizer` is
            neither a tokenizer nor a size, or as `load_corpus`.
        RuntimeError: By Beam, if a worker fails.

    Example:

    ```python
    tokens = kav.beam.prepare("crawled", "en", "de", 32000, workers=8, unique=True)
    kav.training.train_preset(
        preset, tokens.corpus, "runs/crawled", vocabulary_size=32000
    )
    ```
    """
    engine.check_beam()
    engine.arguments(options, workers)
    if not isinstance(tokenizer, Tokenizer):
        check_integer("tokenizer", tokenizer)
    if not Path(folder).is_dir():
        raise ValueError(f"`folder` must be a folder of text files. Received: {folder}")
    corpus = load_corpus(
        folder,
        source_language,
        target_language,
        cleaner=BeamCleaner(options, workers),
        **corpus_options,
    )
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = learn_vocabulary(corpus, tokenizer)
    from keras_attnvariants.beam.tokens import BeamTokenizedCorpus

    tokens = BeamTokenizedCorpus(corpus, tokenizer, options, workers)
    for split in corpus.splits:
        tokens.split(split)
    return tokens
