"""Search over presets with keras-tuner: a trial is a run that a kill does not lose.

Needs the extra `tune`; keras-tuner is imported when a search starts, not before.
"""

from typing import Any

from keras_attnvariants.tuning.budget import Budget
from keras_attnvariants.tuning.named import SPACES
from keras_attnvariants.tuning.named import named_space
from keras_attnvariants.tuning.records import SearchResult
from keras_attnvariants.tuning.records import TrialRecord
from keras_attnvariants.tuning.search import Search
from keras_attnvariants.tuning.search import search
from keras_attnvariants.tuning.space import SearchSpace
from keras_attnvariants.tuning.values import Range

__all__ = [
    "SPACES",
    "Budget",
    "PresetHyperModel",
    "Range",
    "RunTuner",
    "Search",
    "SearchResult",
    "SearchSpace",
    "TrialRecord",
    "named_space",
    "search",
]


def __getattr__(name: str) -> Any:
    if name == "RunTuner":
        from keras_attnvariants.tuning.tuner import RunTuner

        return RunTuner
    if name == "PresetHyperModel":
        from keras_attnvariants.tuning.hypermodel import PresetHyperModel

        return PresetHyperModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
