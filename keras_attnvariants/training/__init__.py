"""Losses, metrics and learning-rate schedules, and exactly resumable training runs."""

from keras_attnvariants.training.losses import LabelSmoothedCrossEntropy
from keras_attnvariants.training.metrics import Perplexity
from keras_attnvariants.training.metrics import TokenCount
from keras_attnvariants.training.schedules import LinearDecay
from keras_attnvariants.training.schedules import NoamSchedule

__all__ = [
    "LabelSmoothedCrossEntropy",
    "LinearDecay",
    "NoamSchedule",
    "Perplexity",
    "TokenCount",
]
