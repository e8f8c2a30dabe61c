"""Compares systems that are trained and scored alike, with tests of significance.

Needs the extra `compare` for its tests over seeds and for its page.
"""

from importlib import import_module
from typing import Any

from keras_attnvariants.experiments.results import ComparisonResult

# These need Keras; results and the start of a process do not.
_HOME = {
    "Comparison": "comparison",
    "ComparisonSettings": "settings",
    "IncompleteError": "comparison",
    "read_settings": "settings",
    "write_template": "checked_tables",
}

__all__ = ["ComparisonResult", *_HOME]


def __getattr__(name: str) -> Any:
    """Import what needs Keras on first use."""
    if name in _HOME:
        module = import_module(f"{__name__}.{_HOME[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
