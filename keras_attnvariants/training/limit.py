"""Training that ends when its time is up."""

import time
from typing import Any

from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.utils.checks import check_positive


class TimeIsUp(Exception):
    """The next period of training would end too late. `train` catches it."""


class TimeLimit(StatefulCallback):
    """Ends training before a period that would not end in time.

    A period is what lies between two validations. The first one is always trained,
    however long it takes. Time counts over all resumes of a run; a later call with
    a higher limit continues it.

    Args:
        minutes: limit for updates and validations together.

    Attributes:
        limit: the same in seconds.
        seconds: how many have passed so far.

    Raises:
        ValueError: `minutes` is not positive.

    Example:

        kav.training.train(model, tokenizer, dataset_at, "runs/first", config,
                           callbacks=[kav.training.TimeLimit(minutes=30)])
    """

    def __init__(self, minutes: float) -> None:
        super().__init__()
        self.limit = 60.0 * check_positive("minutes", minutes)
        self.seconds = 0.0
        # How long the last period was; the next one is expected to be the same.
        self._expected = 0.0
        self._period = 0.0
        self._last = time.monotonic()

    def get_state(self) -> dict[str, Any]:
        self._tick()
        return {"seconds": self.seconds, "longest": self._expected}

    def set_state(self, state: Any) -> None:
        self.seconds, self._expected = state["seconds"], state["longest"]

    def on_train_begin(self, logs: Logs = None) -> None:
        self._last = time.monotonic()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self._tick()
        if self._expected and self.seconds + self._expected > self.limit:
            raise TimeIsUp
        self._period = 0.0

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._tick()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self._tick()
        # Not the longest: the first period includes compilation.
        self._expected = self._period

    def _tick(self) -> None:
        """Count the time since the last call."""
        now = time.monotonic()
        self.seconds += now - self._last
        self._period += now - self._last
        self._last = now
