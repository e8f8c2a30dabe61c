"""Search over presets with keras-tuner: a trial is a run that survives a kill.

Needs the extra `tune`; keras-tuner is only imported when a search starts.
"""

from keras_attnvariants.tuning.dimensions import Range as Range
from keras_attnvariants.tuning.judgement import Judgement as Judgement
from keras_attnvariants.tuning.judgement import judge as judge
from keras_attnvariants.tuning.named_spaces import SPACES as SPACES
from keras_attnvariants.tuning.named_spaces import named_space as named_space
from keras_attnvariants.tuning.proposal import Proposal as Proposal
from keras_attnvariants.tuning.proposal import propose as propose
from keras_attnvariants.tuning.proposal import propose_hybrids as propose_hybrids
from keras_attnvariants.tuning.results import SearchResult as SearchResult
from keras_attnvariants.tuning.results import TrialRecord as TrialRecord
from keras_attnvariants.tuning.search import Search as Search
from keras_attnvariants.tuning.search import search as search
from keras_attnvariants.tuning.space import SearchSpace as SearchSpace
from keras_attnvariants.tuning.trials import Budget as Budget
