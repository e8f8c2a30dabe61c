"""The limit of time of a run."""

import time
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.utils.checks import check_positive


class TimeLimit(StatefulCallback):
    """Ends training after an update, early enough to validate once more in time.

    Time counts from the beginning of the first `train` or `train_preset` that it is
    given to, over all resumes of a run; a later call with a higher limit continues it.
    The run ends with a validation and a saved state, and with a validation of the
    averaged weights. What these will take is known from the validation before; `train`
    makes two before the first update.

    Args:
        minutes: limit for all of the training: the vocabulary if that is learned,
            updates and validations.

    Attributes:
        limit: the same in seconds.
        seconds: seconds that have passed so far.

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
        self._last: float | None = None
        self._updated = 0.0  # `seconds` after the last update
        self._reserved = 0.0  # seconds for what follows the last update
        self._has_ended = False

    @property
    def state_name(self) -> str:
        return TimeLimit.__name__  # that of subclasses, too

    def get_state(self) -> dict[str, Any]:
        self.tick()
        ended = self.limit if self._has_ended else None
        return {"seconds": self.seconds, "ended": ended}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.seconds += state["seconds"]

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self.tick()
        self._updated = self.seconds
        self._end_in_time()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self.tick()
        # The averages are validated, too.
        self._reserved = 2 * (self.seconds - self._updated)
        self._end_in_time()

    def tick(self) -> None:
        """Counts the time since the last call; at the first, begins to count."""
        now = time.monotonic()
        self.seconds += 0.0 if self._last is None else now - self._last
        self._last = now

    def measure(self, validate: Callable[[], Any]) -> None:
        """Measures how long the last validations will take, by two."""
        self.tick()
        before = self.seconds
        validate()  # compiles, as the first translations will
        validate()
        self.tick()
        self._reserved = self.seconds - before

    def _end_in_time(self) -> None:
        if self.seconds + self._reserved >= self.limit:
            self._has_ended = self.model.stop_training = True
