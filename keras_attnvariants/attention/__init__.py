"""Attention variants as Keras layers, one idea per file."""

from keras_attnvariants.attention import recurrences as recurrences
from keras_attnvariants.attention.base import BaseAttention as BaseAttention
from keras_attnvariants.attention.calls import Call as Call
from keras_attnvariants.attention.calls import Masks as Masks
from keras_attnvariants.attention.calls import Step as Step
from keras_attnvariants.attention.concatenated_ngram import (
    ConcatenatedNgram as ConcatenatedNgram,
)
from keras_attnvariants.attention.distance_biases import (
    AlibiAttention as AlibiAttention,
)
from keras_attnvariants.attention.distance_biases import (
    RelativeBiasAttention as RelativeBiasAttention,
)
from keras_attnvariants.attention.dot_product import (
    DotProductAttention as DotProductAttention,
)
from keras_attnvariants.attention.hard_coded import (
    HardCodedAttention as HardCodedAttention,
)
from keras_attnvariants.attention.hard_coded_cross import (
    HardCodedCrossAttention as HardCodedCrossAttention,
)
from keras_attnvariants.attention.linear import LinearAttention as LinearAttention
from keras_attnvariants.attention.local_attention import (
    LocalAttention as LocalAttention,
)
from keras_attnvariants.attention.multi_head import MultiHeadBase as MultiHeadBase
from keras_attnvariants.attention.multi_head import (
    QueryKeyValueAttention as QueryKeyValueAttention,
)
from keras_attnvariants.attention.multi_head import split_heads as split_heads
from keras_attnvariants.attention.neural_ngram import NeuralNgram as NeuralNgram
from keras_attnvariants.attention.phrases.phrase import (
    PhraseAttention as PhraseAttention,
)
from keras_attnvariants.attention.phrases.structures import (
    Heterogeneous as Heterogeneous,
)
from keras_attnvariants.attention.phrases.structures import Homogeneous as Homogeneous
from keras_attnvariants.attention.phrases.structures import Interleaved as Interleaved
from keras_attnvariants.attention.recurrences.recurrent import (
    RecurrentCrossAttention as RecurrentCrossAttention,
)
from keras_attnvariants.attention.registry import get as get
from keras_attnvariants.attention.registry import (
    register_attention as register_attention,
)
from keras_attnvariants.attention.registry import variants as variants
