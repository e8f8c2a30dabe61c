"""Comparisons of systems: trained alike, scored alike, and tested for significance.

Needs the extra `compare` for its tests over seeds and for its page.
"""

from importlib import import_module
from typing import Any

from keras_attnvariants.experiments.result_tables import AnalysisTable
from keras_attnvariants.experiments.result_tables import AttentionLayer
from keras_attnvariants.experiments.result_tables import SampleSentence
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.experiments.results import Cost
from keras_attnvariants.experiments.results import CurvePoint
from keras_attnvariants.experiments.results import Difference
from keras_attnvariants.experiments.results import Origin
from keras_attnvariants.experiments.results import RunResult
from keras_attnvariants.experiments.results import ScoreSummary
from keras_attnvariants.experiments.results import SystemResult
from keras_attnvariants.experiments.results import TestSet

# They need Keras, which results do not.
_HOME = {
    "Comparison": "comparison",
    "ComparisonSettings": "settings",
    "IncompleteError": "comparison",
    "read_settings": "settings",
    "write_template": "settings",
}

__all__ = [
    "AnalysisTable",
    "AttentionLayer",
    "Comparison",
    "ComparisonResult",
    "ComparisonSettings",
    "Cost",
    "CurvePoint",
    "Difference",
    "IncompleteError",
    "Origin",
    "RunResult",
    "SampleSentence",
    "ScoreSummary",
    "SystemResult",
    "TestSet",
    "read_settings",
    "write_template",
]


def __getattr__(name: str) -> Any:
    """Import what needs Keras on first use."""
    if name in _HOME:
        module = import_module(f"{__name__}.{_HOME[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
