"""The loop of a run: periods of updates by Keras' `fit`, and their validations."""

import contextlib
import dataclasses
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras

from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.training.averaging import MovingAverage
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.callbacks import StepCounter
from keras_attnvariants.training.config import TrainingConfig
from keras_attnvariants.training.limit import TimeIsUp
from keras_attnvariants.training.state import LoadedState
from keras_attnvariants.training.state import assign_arrays


@dataclasses.dataclass(frozen=True)
class Training:
    """What is trained, on what, and how: most arguments of `train`, which tells them.

    Raises:
        ValueError: the model has another precision than the settings.
    """

    model: keras.Model
    tokenizer: Tokenizer | None
    data: Callable[[int], Any]
    config: TrainingConfig
    validation_data: Any = None
    validation_texts: tuple[Sequence[str], Sequence[str]] | None = None
    translate: Callable[[list[str]], Sequence[str]] | None = None
    metrics: Sequence[keras.metrics.Metric] = ()
    callbacks: Sequence[keras.callbacks.Callback] = ()
    verbose: int | str = "auto"

    def __post_init__(self) -> None:
        if self.model.dtype_policy.name != self.config.precision:
            raise ValueError(
                "`config.precision` must be the dtype policy of the model. It is "
                f"{self.config.precision!r}. "
                f"Received: a model of policy {self.model.dtype_policy.name!r}"
            )


class TrainingLoop:
    """Periods of updates, each with a validation, up to the end of a run.

    Args:
        training: what is trained; its model is compiled.
        classes: number of classes of the model.

    Attributes:
        progress: where the run stands.
    """

    def __init__(self, training: Training, classes: int) -> None:
        self._model = training.model
        self._data = training.data
        self._validation_data = training.validation_data
        self._config = training.config
        # `train` shows a bar of its own unless `fit` is to show something.
        self._verbose = 0 if training.verbose == "auto" else training.verbose
        self.progress = Progress()
        self._moving = None if training.config.ema is None else MovingAverage()
        self._counter = StepCounter(self.progress, classes)
        self._callbacks: list[keras.callbacks.Callback] = []

    @property
    def is_done(self) -> bool:
        """Whether no update is left."""
        return self.progress.step >= self._config.steps or self.progress.stopped

    def start(self, state: LoadedState | None) -> None:
        """Set model, optimizer and progress to a saved state, or start a new run."""
        if state is None:
            return
        progress, model = self.progress, self._model
        for field, value in state.progress.items():
            if field != "callbacks":
                setattr(progress, field, value)
        assign_arrays(model.variables, state.variables["model"], "model")
        assign_arrays(
            model.optimizer.variables, state.variables["optimizer"], "optimizer"
        )
        if progress.step < progress.period_end:
            self._counter.metrics = state.variables["metrics"]

    def run(self, callbacks: Sequence[keras.callbacks.Callback]) -> None:
        """All remaining updates and validations, unless the time is up before.

        Args:
            callbacks: come after those that count updates and average weights.
        """
        moving = [] if self._moving is None else [self._moving]
        self._callbacks = [self._counter, *moving, *callbacks]
        with contextlib.suppress(TimeIsUp):
            if self.progress.validation_pending:
                self._validate()
            while not self.is_done:
                self._fit()

    def take_out_averages(self) -> None:
        """Give the model its own weights back if it has their moving averages."""
        if self._moving is not None:
            self._moving.take_out()

    def evaluate(self, callbacks: Any = None) -> dict[str, float]:
        """Validation metrics of the model as it is now."""
        if self._validation_data is None:
            return {}
        logs = self._model.evaluate(
            self._validation_data, verbose=0, callbacks=callbacks, return_dict=True
        )
        return {f"val_{name}": value for name, value in logs.items()}

    def _fit(self) -> None:
        """One `fit` over all full periods that follow, or over a shorter one.

        A period is shorter after a resume in the middle of it, and at the end.
        """
        step, period = self.progress.step, self._config.validate_every
        left = self._config.steps - step
        epoch = step // period
        if step % period or left < period:
            epochs, updates = epoch + 1, min(period - step % period, left)
        else:
            epochs, updates = epoch + left // period, period
        self._model.fit(
            self._data(step * self._config.accumulate),
            validation_data=self._validation_data,
            initial_epoch=epoch,
            epochs=epochs,
            steps_per_epoch=updates,
            shuffle=False,  # the dataset has its own order
            callbacks=self._callbacks,
            verbose=self._verbose,
        )

    def _validate(self) -> None:
        """The validation of a period whose updates were finished before a resume."""
        epoch = (self.progress.step - 1) // self._config.validate_every
        self._model.stop_training = False
        callbacks = keras.callbacks.CallbackList(self._callbacks, model=self._model)
        callbacks.on_train_begin()
        logs = self.progress.logs | self.evaluate(callbacks)
        callbacks.on_epoch_end(epoch, logs)
        callbacks.on_train_end(logs)
