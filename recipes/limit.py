"""Training that ends when its time is up, and goes on with what is left of it."""

import dataclasses
import time
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras

from keras_attnvariants.training import StatefulCallback
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training import TrainingResult
from keras_attnvariants.training import train


class TimeIsUp(Exception):
    """The next period of training would end too late."""


class TimeLimit(StatefulCallback):
    """Ends training before a period that would not end in time.

    The first period is always done. Time counts over all resumes of a run.

    Args:
        minutes: of training, validation included.
    """

    def __init__(self, minutes: float) -> None:
        super().__init__()
        if not minutes > 0:
            raise ValueError(f"`minutes` must be positive. Received: {minutes}")
        self.limit = 60.0 * minutes
        self.seconds = self.longest = 0.0
        self._period = 0.0
        self._last = time.monotonic()

    def get_state(self) -> dict[str, Any]:
        self._tick()
        return {"seconds": self.seconds, "longest": self.longest}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.seconds, self.longest = state["seconds"], state["longest"]

    def on_train_begin(self, logs: Any = None) -> None:
        self._last = time.monotonic()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._tick()
        if self.longest and self.seconds + self.longest > self.limit:
            raise TimeIsUp
        self._period = 0.0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._tick()
        # The first one compiles; a later one is what the others will be like.
        self.longest = self._period

    def _tick(self) -> None:
        now = time.monotonic()
        self.seconds += now - self._last
        self._period += now - self._last
        self._last = now


def train_within(
    limit: TimeLimit | None,
    *arguments: Any,
    config: TrainingConfig,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    **options: Any,
) -> TrainingResult:
    """`train`, but no longer than `limit` allows, if there is one."""
    if limit is None:
        return train(*arguments, config=config, callbacks=callbacks, **options)
    callbacks = [*callbacks, limit]
    try:
        return train(*arguments, config=config, callbacks=callbacks, **options)
    except TimeIsUp:
        # The state was saved at the end of the last period: this only averages.
        steps = int(limit.model.optimizer.iterations)
        config = dataclasses.replace(config, steps=steps)
        return train(*arguments, config=config, callbacks=callbacks, **options)
