"""Attention variants as Keras layers, one idea per file."""

from keras_attnvariants.attention import recurrences
from keras_attnvariants.attention.base import BaseAttention
from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Masks
from keras_attnvariants.attention.calls import Step
from keras_attnvariants.attention.concatenated_ngram import ConcatenatedNgram
from keras_attnvariants.attention.distance_biases import AlibiAttention
from keras_attnvariants.attention.distance_biases import RelativeBiasAttention
from keras_attnvariants.attention.dot_product import DotProductAttention
from keras_attnvariants.attention.hard_coded import HardCodedAttention
from keras_attnvariants.attention.hard_coded_cross import HardCodedCrossAttention
from keras_attnvariants.attention.linear import LinearAttention
from keras_attnvariants.attention.local_attention import LocalAttention
from keras_attnvariants.attention.multi_head import MultiHeadBase
from keras_attnvariants.attention.multi_head import QueryKeyValueAttention
from keras_attnvariants.attention.multi_head import split_heads
from keras_attnvariants.attention.neural_ngram import NeuralNgram
from keras_attnvariants.attention.phrases.phrase import PhraseAttention
from keras_attnvariants.attention.phrases.structures import Heterogeneous
from keras_attnvariants.attention.phrases.structures import Homogeneous
from keras_attnvariants.attention.phrases.structures import Interleaved
from keras_attnvariants.attention.recurrences.recurrent import RecurrentCrossAttention
from keras_attnvariants.attention.registry import get
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.attention.registry import variants

__all__ = [
    "AlibiAttention",
    "BaseAttention",
    "Call",
    "ConcatenatedNgram",
    "DotProductAttention",
    "HardCodedAttention",
    "HardCodedCrossAttention",
    "Heterogeneous",
    "Homogeneous",
    "Interleaved",
    "LinearAttention",
    "LocalAttention",
    "Masks",
    "MultiHeadBase",
    "NeuralNgram",
    "PhraseAttention",
    "QueryKeyValueAttention",
    "RecurrentCrossAttention",
    "RelativeBiasAttention",
    "Step",
    "get",
    "recurrences",
    "register_attention",
    "split_heads",
    "variants",
]
