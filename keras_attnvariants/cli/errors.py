"""Wrong input as one line on standard error, and a quiet TensorFlow."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from keras_attnvariants.utils.garbage import staying

# Read by TensorFlow when it is imported: warnings and errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# What TensorFlow imports of Keras, if it can.
OPTIMIZERS = "keras.src.optimizers"


@contextmanager
def clear_errors() -> Iterator[None]:
    """Context that turns what is wrong with the input into one line and exit code 2.

    Other exceptions are mistakes of the program and keep their traceback.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of our output has enough: no error of the input
    except (ValueError, OSError, ArithmeticError) as error:
        typer.echo(f"Error: {one_line(str(error))}", err=True)
        raise typer.Exit(2) from error


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


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
