"""The joint vocabulary of a corpus, learned once."""

from typing import Any

from keras_attnvariants.data.corpora import Corpus
from keras_attnvariants.data.files import fingerprint
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.utils.folders import FolderWriter
from keras_attnvariants.utils.folders import cached_folder

FILE = "tokenizer.model"


def learn_vocabulary(corpus: Corpus, vocabulary_size: int, **options: Any) -> Tokenizer:
    """Returns the vocabulary of the training split, from the cache if it is there.

    The tags of the corpus are in it. It is kept beside the cleaned corpus, by the
    content of its files and by all that determines what is learned from them.

    Args:
        corpus: has a split "train".
        vocabulary_size: as for `Tokenizer.train`.
        **options: further arguments of `Tokenizer.train`.

    Raises:
        ValueError: As `Tokenizer.train`, or the corpus has no split "train".
    """
    import sentencepiece

    files = corpus.files("train")
    if corpus.tags:
        options["tags"] = corpus.tags
    key = fingerprint(files, sentencepiece.__version__, vocabulary_size, options)

    def write(folder: FolderWriter) -> None:
        tokenizer = Tokenizer.train(files, vocabulary_size, **options)
        folder.write_bytes(FILE, tokenizer.model_bytes)

    folder = cached_folder(corpus.folder / "vocabularies" / key, write)
    return Tokenizer.load(folder / FILE)
