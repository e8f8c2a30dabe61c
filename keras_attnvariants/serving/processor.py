"""Whether a processor gives exact results to models that multiply 8-bit integers.

See `keras_attnvariants.backend.onednn` for what goes wrong on others.
"""

import os
from typing import Any

import tensorflow as tf

from keras_attnvariants.serving.operators import ONEDNN_OPERATORS
from keras_attnvariants.serving.operators import operators

WRONG = (
    "This model multiplies 8-bit integers, which this processor does not do exactly, "
    "so that translations would be wrong: use one with AVX512-VNNI or AVX-VNNI, or "
    "export the model again in another precision than int8."
)


class ProcessorError(ValueError):
    """An exported model would translate wrongly on this processor."""


def check_in_graph() -> Any:
    """An operator that fails where integers are not multiplied exactly.

    TensorFlow computes the products once, when it loads the graph.
    """
    from keras_attnvariants import backend

    return tf.debugging.Assert(backend.sums_exactly(), [WRONG])


def check_processor(path: str | os.PathLike[str]) -> None:
    """Raises if a SavedModel would translate wrongly on this processor.

    Args:
        path: folder of one version; nothing of it is loaded or run.

    Raises:
        ProcessorError: it multiplies 8-bit integers, which are not exact here.
    """
    used: set[str] = set().union(*operators(path).values())
    if not used & ONEDNN_OPERATORS:
        return
    from keras_attnvariants import backend  # with Keras, which others need not

    if not backend.is_onednn_exact():
        raise ProcessorError(f"{WRONG} Received: {os.fspath(path)}")
