"""Search over presets with keras-tuner: a trial is a run that a kill does not lose.

Needs the extra `tune`; keras-tuner is imported when a search starts, not before.
"""

from keras_attnvariants.tuning.dimensions import Range
from keras_attnvariants.tuning.judgement import Judgement
from keras_attnvariants.tuning.judgement import judge
from keras_attnvariants.tuning.named_spaces import SPACES
from keras_attnvariants.tuning.named_spaces import named_space
from keras_attnvariants.tuning.proposal import Proposal
from keras_attnvariants.tuning.proposal import propose
from keras_attnvariants.tuning.proposal import propose_hybrids
from keras_attnvariants.tuning.results import SearchResult
from keras_attnvariants.tuning.results import TrialRecord
from keras_attnvariants.tuning.search import Search
from keras_attnvariants.tuning.search import search
from keras_attnvariants.tuning.space import SearchSpace
from keras_attnvariants.tuning.trials import Budget

__all__ = [
    "SPACES",
    "Budget",
    "Judgement",
    "Proposal",
    "Range",
    "Search",
    "SearchResult",
    "SearchSpace",
    "TrialRecord",
    "judge",
    "named_space",
    "propose",
    "propose_hybrids",
    "search",
]
