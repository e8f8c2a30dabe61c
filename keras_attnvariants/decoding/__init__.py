"""Decoding with any step model: search, sampling, scoring and translation of texts.

Axes: `B` sentences, `K` beams, `N` hypotheses returned, `T` target and `S` source
positions, `V` vocabulary.
"""

from keras_attnvariants.decoding.beam_search import beam_search as beam_search
from keras_attnvariants.decoding.sampling import sample as sample
from keras_attnvariants.decoding.scoring import TokenScores as TokenScores
from keras_attnvariants.decoding.scoring import score as score
from keras_attnvariants.decoding.scoring import score_tokens as score_tokens
from keras_attnvariants.decoding.staged_search import IMPOSSIBLE as IMPOSSIBLE
from keras_attnvariants.decoding.staged_search import Hypotheses as Hypotheses
from keras_attnvariants.decoding.step_model import StepModel as StepModel
from keras_attnvariants.decoding.texts import Translation as Translation
from keras_attnvariants.decoding.translator import Translator as Translator
from keras_attnvariants.models.ensemble import Ensemble as Ensemble
