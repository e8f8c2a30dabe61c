"""The vocabulary that several runs share: learned once, in the folder above them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_attnvariants.data import Corpus
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.data.vocabularies import learn_vocabulary
from keras_attnvariants.utils.files import write_file


def prepare_vocabulary(
    folder: Path, corpus: Corpus, vocabulary_size: int, subwords: Mapping[str, Any]
) -> None:
    """Learns the vocabulary of a corpus, unless the folder has one.

    Args:
        folder: of all runs.
        corpus, vocabulary_size, subwords: as for `train_preset`.
    """
    if not (folder / TOKENIZER).is_file():
        tokenizer = learn_vocabulary(corpus, vocabulary_size, **subwords)
        write_file(folder / TOKENIZER, tokenizer.model_bytes)


def copy_vocabulary(folder: Path, run: Path) -> None:
    """Gives a run the vocabulary of the folder, unless it has one."""
    run.mkdir(parents=True, exist_ok=True)
    if not (run / TOKENIZER).exists():
        write_file(run / TOKENIZER, (folder / TOKENIZER).read_bytes())
