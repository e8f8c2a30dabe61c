"""Corpora, the tokenizer and the `tf.data` pipeline.

TensorFlow is imported when `TokenizedCorpus` is first used, not before.
"""

from typing import Any

from keras_attnvariants.data.batching import BatchPlan
from keras_attnvariants.data.batching import BatchShape
from keras_attnvariants.data.corpora import Corpus
from keras_attnvariants.data.corpora import load_corpus
from keras_attnvariants.data.folders import ParallelFiles
from keras_attnvariants.data.mixing import mix_corpora
from keras_attnvariants.data.mixture import Mixture
from keras_attnvariants.data.registry import FetchError
from keras_attnvariants.data.registry import RegisteredCorpus
from keras_attnvariants.data.registry import names as corpus_names
from keras_attnvariants.data.registry import register_corpus
from keras_attnvariants.data.shortlist import Shortlist
from keras_attnvariants.data.tokenizer import Tokenizer

__all__ = [
    "BatchPlan",
    "BatchShape",
    "Corpus",
    "FetchError",
    "Mixture",
    "ParallelFiles",
    "RegisteredCorpus",
    "Shortlist",
    "TokenizedCorpus",
    "Tokenizer",
    "corpus_names",
    "load_corpus",
    "mix_corpora",
    "register_corpus",
]


def __getattr__(name: str) -> Any:
    if name == "TokenizedCorpus":
        from keras_attnvariants.data.pipeline import TokenizedCorpus

        return TokenizedCorpus
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
