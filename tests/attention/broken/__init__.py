"""Layers that are broken on purpose, to see that the conformance tests catch them.

`python -m tests.attention.broken` runs all of the tests on each of them and prints
which ones fail, as a table.
"""

from tests.attention.broken import decoding  # noqa: F401
from tests.attention.broken import keras_layers  # noqa: F401
from tests.attention.broken import masks  # noqa: F401
from tests.attention.broken import numbers  # noqa: F401
from tests.attention.broken.registry import BROKEN
from tests.attention.broken.registry import Broken

__all__ = ["BROKEN", "Broken"]
