"""Corpora, the tokenizer, the `tf.data` pipeline, and folders of models.

TensorFlow and Keras are imported when `TokenizedCorpus` or the functions for models
are first used, not before.
"""

from importlib import import_module
from typing import Any

from keras_attnvariants.data.audio import AudioTokenizer
from keras_attnvariants.data.batching import BatchPlan
from keras_attnvariants.data.batching import BatchShape
from keras_attnvariants.data.corpora import Corpus
from keras_attnvariants.data.corpora import load_corpus
from keras_attnvariants.data.mixing import Mixture
from keras_attnvariants.data.mixing import mix_corpora
from keras_attnvariants.data.shortlist import Shortlist
from keras_attnvariants.data.sources import RegisteredCorpus
from keras_attnvariants.data.sources import names as corpus_names
from keras_attnvariants.data.sources import register_corpus
from keras_attnvariants.data.sources.download import FetchError
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.tokenizer import Tokenizer

__all__ = [
    "AudioTokenizer",
    "BatchPlan",
    "BatchShape",
    "Corpus",
    "FetchError",
    "LoadedModel",
    "Mixture",
    "ParallelFiles",
    "RegisteredCorpus",
    "Shortlist",
    "TokenizedCorpus",
    "Tokenizer",
    "corpus_names",
    "load_corpus",
    "load_model",
    "mix_corpora",
    "register_corpus",
    "save_model",
]

_LATE = {
    "LoadedModel": "model_folders",
    "TokenizedCorpus": "pipeline",
    "load_model": "model_folders",
    "save_model": "model_folders",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
