"""Comparisons of systems: trained alike, scored alike, and tested for significance.

Needs the extra `compare` for its tests over seeds and for its page.
"""

from keras_attnvariants.experiments.results import AnalysisTable
from keras_attnvariants.experiments.results import AttentionLayer
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.experiments.results import Cost
from keras_attnvariants.experiments.results import CurvePoint
from keras_attnvariants.experiments.results import Difference
from keras_attnvariants.experiments.results import Origin
from keras_attnvariants.experiments.results import RunResult
from keras_attnvariants.experiments.results import SampleSentence
from keras_attnvariants.experiments.results import ScoreSummary
from keras_attnvariants.experiments.results import SystemResult
from keras_attnvariants.experiments.results import TestSet

__all__ = [
    "AnalysisTable",
    "AttentionLayer",
    "ComparisonResult",
    "Cost",
    "CurvePoint",
    "Difference",
    "Origin",
    "RunResult",
    "SampleSentence",
    "ScoreSummary",
    "SystemResult",
    "TestSet",
]
