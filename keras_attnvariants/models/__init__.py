"""Sequence-to-sequence models wired from attention variants."""

from keras_attnvariants.models.positions import ConcatenatedPositions
from keras_attnvariants.models.positions import SinusoidalPositions
from keras_attnvariants.models.saving import from_preset
from keras_attnvariants.models.saving import save_preset
from keras_attnvariants.models.seq2seq import Seq2SeqLSTM
from keras_attnvariants.models.transformer import Transformer

__all__ = [
    "ConcatenatedPositions",
    "Seq2SeqLSTM",
    "SinusoidalPositions",
    "Transformer",
    "from_preset",
    "save_preset",
]
