"""Sequence-to-sequence models wired from attention variants."""

from keras_attnvariants.models.base import SearchSettings
from keras_attnvariants.models.ensemble import Ensemble
from keras_attnvariants.models.positions import ConcatenatedPositions
from keras_attnvariants.models.positions import SinusoidalPositions
from keras_attnvariants.models.seq2seq import Seq2SeqLSTM
from keras_attnvariants.models.speech import SpeechFrontEnd
from keras_attnvariants.models.swapping import SwappedLayer
from keras_attnvariants.models.swapping import SwappedModel
from keras_attnvariants.models.swapping import swap_attention
from keras_attnvariants.models.templates import highest
from keras_attnvariants.models.templates import lowest
from keras_attnvariants.models.transformer import Transformer

__all__ = [
    "ConcatenatedPositions",
    "Ensemble",
    "SearchSettings",
    "Seq2SeqLSTM",
    "SinusoidalPositions",
    "SpeechFrontEnd",
    "SwappedLayer",
    "SwappedModel",
    "Transformer",
    "highest",
    "lowest",
    "swap_attention",
]
