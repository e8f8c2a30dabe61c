"""Attention variants as Keras layers, one idea per file."""

from keras_attnvariants.attention import recurrences
from keras_attnvariants.attention.base import BaseAttention
from keras_attnvariants.attention.concatenated_ngram import ConcatenatedNgram
from keras_attnvariants.attention.dot_product import DotProductAttention
from keras_attnvariants.attention.hard_coded import HardCodedAttention
from keras_attnvariants.attention.hard_coded_cross import HardCodedCrossAttention
from keras_attnvariants.attention.local_attention import LocalAttention
from keras_attnvariants.attention.masks import Masks
from keras_attnvariants.attention.neural_ngram import NeuralNgram
from keras_attnvariants.attention.recurrent import RecurrentCrossAttention
from keras_attnvariants.attention.registry import get
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.attention.registry import variants

__all__ = [
    "BaseAttention",
    "ConcatenatedNgram",
    "DotProductAttention",
    "HardCodedAttention",
    "HardCodedCrossAttention",
    "LocalAttention",
    "Masks",
    "RecurrentCrossAttention",
    "NeuralNgram",
    "get",
    "recurrences",
    "register_attention",
    "variants",
]
