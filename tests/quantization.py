"""Quantizing in tests, where there are many objects beside the model."""

import contextlib
import gc
import unittest.mock
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quantizing() -> Iterator[None]:
    """Spares searches for garbage, and warnings of what has nothing to quantize.

    Keras searches all objects after every layer. What there is by the end is not
    searched again either.
    """
    with unittest.mock.patch.object(gc, "collect"), warnings.catch_warnings():
        message = "Layer .* does not have a `quantize` method"
        warnings.filterwarnings("ignore", message)
        yield
    gc.freeze()
