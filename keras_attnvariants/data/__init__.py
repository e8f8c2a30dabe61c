"""Corpora, the tokenizer, the `tf.data` pipeline, and folders of models.

TensorFlow and Keras are imported when `TokenizedCorpus` or the functions for models
are first used, not before.
"""

from keras_attnvariants.data.audio import AudioTokenizer as AudioTokenizer
from keras_attnvariants.data.batching import BatchPlan as BatchPlan
from keras_attnvariants.data.batching import BatchShape as BatchShape
from keras_attnvariants.data.corpora import Corpus as Corpus
from keras_attnvariants.data.corpora import load_corpus as load_corpus
from keras_attnvariants.data.mixing import Mixture as Mixture
from keras_attnvariants.data.mixing import mix_corpora as mix_corpora
from keras_attnvariants.data.shortlist import Shortlist as Shortlist
from keras_attnvariants.data.sources import RegisteredCorpus as RegisteredCorpus
from keras_attnvariants.data.sources import corpus_names as corpus_names
from keras_attnvariants.data.sources import register_corpus as register_corpus
from keras_attnvariants.data.sources.download import FetchError as FetchError
from keras_attnvariants.data.splits import ParallelFiles as ParallelFiles
from keras_attnvariants.data.tokenizer import Tokenizer as Tokenizer
from keras_attnvariants.utils.importing import late_names

_LATE = {
    "LoadedModel": "model_folders",
    "TokenizedCorpus": "pipeline",
    "load_model": "model_folders",
    "save_model": "model_folders",
}

__getattr__ = late_names(__name__, _LATE)
