"""Sequence-to-sequence models wired from attention variants."""

from keras_attnvariants.models.base import SearchSettings as SearchSettings
from keras_attnvariants.models.ensemble import Ensemble as Ensemble
from keras_attnvariants.models.positions import (
    ConcatenatedPositions as ConcatenatedPositions,
)
from keras_attnvariants.models.positions import (
    SinusoidalPositions as SinusoidalPositions,
)
from keras_attnvariants.models.seq2seq import Seq2SeqLSTM as Seq2SeqLSTM
from keras_attnvariants.models.speech import SpeechFrontEnd as SpeechFrontEnd
from keras_attnvariants.models.swapping import SwappedLayer as SwappedLayer
from keras_attnvariants.models.swapping import SwappedModel as SwappedModel
from keras_attnvariants.models.swapping import swap_attention as swap_attention
from keras_attnvariants.models.transformer import Transformer as Transformer
