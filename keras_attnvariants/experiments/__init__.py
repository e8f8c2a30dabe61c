"""Compares systems that are trained and scored alike, with tests of significance.

Needs the extra `compare` for its tests over seeds and for its page.
"""

from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.utils.importing import late_names

# These need Keras; results and the start of a process do not.
_HOME = {
    "Comparison": "comparison",
    "ComparisonSettings": "settings",
    "IncompleteError": "comparison",
    "read_settings": "settings",
    "write_template": "checked_tables",
}

__all__ = ["ComparisonResult", *_HOME]

__getattr__ = late_names(__name__, _HOME)
