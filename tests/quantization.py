"""Quantization in tests, where many objects exist besides the model."""

import contextlib
import gc
import unittest.mock
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quantizing() -> Iterator[None]:
    """Avoids garbage collections, and warnings of layers that cannot be quantized.

    Keras collects garbage among all objects after every layer. Objects that exist at
    the end are left out of later collections too.
    """
    with unittest.mock.patch.object(gc, "collect"), warnings.catch_warnings():
        message = "Layer .* does not have a `quantize` method"
        warnings.filterwarnings("ignore", message)
        yield
    gc.freeze()
