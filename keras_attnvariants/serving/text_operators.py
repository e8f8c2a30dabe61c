"""The operators of the tokenizer, without the rest of TensorFlow Text."""

import importlib.util
import sys
from pathlib import Path

import tensorflow as tf

_LIBRARY = "python/ops/_sentencepiece_tokenizer.so"


def register_text_operators() -> None:
    """Lets TensorFlow load SavedModels that read text.

    TensorFlow Text itself is imported only if it keeps them elsewhere: it brings Keras
    with it.
    """
    if "tensorflow_text" in sys.modules:
        return
    found = importlib.util.find_spec("tensorflow_text")
    library = Path(found.origin).parent / _LIBRARY if found and found.origin else None
    if library is not None and library.is_file():
        tf.load_op_library(str(library))
    else:
        import tensorflow_text  # noqa: F401
