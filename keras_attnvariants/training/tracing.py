"""No searches for garbage while Keras traces what it trains and validates with."""

import contextlib

import keras

from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.utils.garbage import no_collection


class UndisturbedTracing(keras.callbacks.Callback):
    """Spares Python's searches for garbage during the first update and validation.

    Their graphs are very many objects that stay. It spares them in the first batch of
    every epoch and validation, since it does not know which of them traces. Whoever
    calls `fit` closes it, since no callback hears of an error.
    """

    def __init__(self) -> None:
        super().__init__()
        self._paused = contextlib.ExitStack()

    def close(self) -> None:
        """Lets Python search again."""
        self._paused.close()

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        if batch == 0:
            self._pause()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self.close()

    def on_test_batch_begin(self, batch: int, logs: Logs = None) -> None:
        if batch == 0:
            self._pause()

    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None:
        self.close()

    def _pause(self) -> None:
        self.close()
        self._paused.enter_context(no_collection())
