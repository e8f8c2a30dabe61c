"""Imports of TensorFlow that print nothing, and that bring no more than is needed."""

import os
import sys

from keras_attnvariants.utils.garbage import staying

# Read by TensorFlow when it is imported: warnings and errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# What TensorFlow imports of Keras, if it can.
OPTIMIZERS = "keras.src.optimizers"


def import_tensorflow() -> None:
    """Imports TensorFlow without its greeting, which no log level silences."""
    if "tensorflow" in sys.modules:
        return
    sys.stderr.flush()
    original, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        with staying():
            import tensorflow as tf

            if os.environ.get("KERAS_BACKEND") == "jax":
                # JAX computes there; TensorFlow would take all of its memory.
                tf.config.set_visible_devices([], "GPU")
            tf.config.list_logical_devices()
    finally:
        os.dup2(original, 2)
        os.close(original)
        os.close(nowhere)


def import_tensorflow_alone() -> None:
    """The same without Keras, which takes TensorFlow a third of its time to import.

    It does so for those who load what Keras saved, and can do without.
    """
    if OPTIMIZERS in sys.modules:
        return import_tensorflow()
    sys.modules[OPTIMIZERS] = None  # type: ignore[assignment]
    try:
        import_tensorflow()
    finally:
        del sys.modules[OPTIMIZERS]
