"""Decoding with any step model: search, sampling, scoring, translation of texts.

Axes: `B` sentences, `K` beams, `N` hypotheses returned, `T` target and `S` source
positions, `V` vocabulary.
"""

from keras_attnvariants.decoding.beam_search import beam_search
from keras_attnvariants.decoding.greedy_search import greedy_search
from keras_attnvariants.decoding.sampling import sample
from keras_attnvariants.decoding.scoring import TokenScores
from keras_attnvariants.decoding.scoring import score
from keras_attnvariants.decoding.scoring import score_tokens
from keras_attnvariants.decoding.staged_search import IMPOSSIBLE
from keras_attnvariants.decoding.staged_search import Hypotheses
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.texts import Translation
from keras_attnvariants.decoding.translator import Translator
from keras_attnvariants.models.ensemble import Ensemble

__all__ = [
    "IMPOSSIBLE",
    "Ensemble",
    "Hypotheses",
    "StepModel",
    "TokenScores",
    "Translation",
    "Translator",
    "beam_search",
    "greedy_search",
    "sample",
    "score",
    "score_tokens",
]
