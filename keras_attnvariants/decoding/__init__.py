"""Decoding with any step model: greedy and beam search, scoring, translation of texts.

Axes: `B` sentences, `K` beams, `N` hypotheses returned, `T` target and `S` source
positions, `V` vocabulary.
"""

from keras_attnvariants.decoding.beam_search import beam_search
from keras_attnvariants.decoding.greedy_search import greedy_search
from keras_attnvariants.decoding.hypotheses import IMPOSSIBLE
from keras_attnvariants.decoding.hypotheses import Hypotheses
from keras_attnvariants.decoding.scoring import score
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.translator import Translation
from keras_attnvariants.decoding.translator import Translator

__all__ = [
    "IMPOSSIBLE",
    "Hypotheses",
    "StepModel",
    "Translation",
    "Translator",
    "beam_search",
    "greedy_search",
    "score",
]
