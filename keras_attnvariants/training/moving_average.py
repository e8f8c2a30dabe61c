"""Validation with moving averages of the weights, which the optimizer keeps."""

import keras

from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.training.state import to_arrays


class MovingAverage(keras.callbacks.Callback):
    """Validates, and saves as the best model, the averages in place of the weights.

    It comes first among the callbacks. Whoever saves the state of the run takes the
    averages out before.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_in = False

    def on_test_begin(self, logs: Logs = None) -> None:
        self._put_in()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self._put_in()  # there may be no validation data

    def take_out(self) -> None:
        """Gives the model its own weights back."""
        if self._is_in:
            self._swap()

    def _put_in(self) -> None:
        if not self._is_in:
            self._swap()

    def _swap(self) -> None:
        optimizer = self.model.optimizer
        # Mixed float16 wraps the optimizer.
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        variables = self.model.trainable_variables, optimizer.averages
        weights, averages = (to_arrays(group) for group in variables)
        assign_arrays(variables[0], averages, "average")
        assign_arrays(variables[1], weights, "weight")
        self._is_in = not self._is_in
