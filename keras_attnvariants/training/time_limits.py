"""Time limits: training that ends in time, and learning rates that decay until then."""

import math
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras

from keras_attnvariants.backend import distribution
from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_positive


class TimeLimit(StatefulCallback):
    """Ends training after an update, early enough to validate once more in time.

    Time counts from the first call of `train` or `train_preset` with this callback,
    over all resumes of a run; a later call with a higher limit continues the run. The
    run ends with a validation, a saved state, and a validation of the averaged weights.
    Their duration is known from the previous validation; `train` makes two before the
    first update.

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
        """Measures how long the last validations will take, by running two."""
        self.tick()
        before = self.seconds
        validate()  # compiles, as the first translations will
        validate()
        self.tick()
        self._reserved = self.seconds - before

    def _end_in_time(self) -> None:
        if self.seconds + self._reserved >= self.limit:
            self._has_ended = self.model.stop_training = True


class TimedDecay(TimeLimit):
    """A time limit, with a learning rate that decays until the time is up.

        rate = peak * min(s / warmup_steps, 1) * (0.51 + 0.49 * cos(pi * share))

    Here `s` is the number of the update, from 1, and `share` the part of the time that
    has passed, or of the updates if those end first. On a slow machine, a schedule in
    updates would be cut off in the middle, and a model whose rate has not decayed is
    far from its best. The rate depends on the clock: unlike other runs, a repeated run
    ends with other weights.

    Args:
        minutes: limit for all of the training, as for `TimeLimit`.
        steps: number of updates of the whole run, as in its settings.
        peak: the highest rate, in place of the `learning_rate` of the settings, which
            must be a number.
        warmup_steps: updates of the linear warm-up.

    Raises:
        ValueError: a number is not positive, or several processes train together.

    Example:

        settings = {"steps": 5000, "learning_rate": 1e-3}
        decay = kav.training.TimedDecay(30, steps=5000, peak=1e-3, warmup_steps=250)
        kav.training.train_preset(preset, corpus, "runs/first", settings=settings,
                                  callbacks=[decay])
    """

    def __init__(
        self, minutes: float, steps: int, peak: float, warmup_steps: int
    ) -> None:
        super().__init__(minutes)
        self.steps = check_integer("steps", steps)
        self.peak = check_positive("peak", peak)
        self.warmup_steps = check_integer("warmup_steps", warmup_steps)
        if distribution.process_count() > 1:
            raise ValueError(
                "The clocks of several processes differ: give them a schedule. "
                f"Received: {distribution.process_count()} processes"
            )

    def rate(self, done: int) -> float:
        """The rate of the next update.

        Args:
            done: number of the updates before it.
        """
        left = self.limit - self._reserved
        share = max(done / self.steps, self.seconds / left if left > 0 else 1.0)
        warmth = min((done + 1) / self.warmup_steps, 1.0)
        return self.peak * warmth * (0.51 + 0.49 * math.cos(math.pi * min(share, 1.0)))

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        optimizer = self.model.optimizer
        optimizer.learning_rate = self.rate(int(optimizer.iterations))


def share_done(step: int, steps: int, limit: TimeLimit | None) -> float:
    """The share of a run that is done, of updates or of time: the larger."""
    time_spent = 0.0 if limit is None else limit.seconds / limit.limit
    return min(max(step / steps, time_spent), 1.0)


def started_limit(callbacks: Sequence[keras.callbacks.Callback]) -> TimeLimit | None:
    """The time limit among the callbacks; it starts now if it has not yet."""
    limit = next((c for c in callbacks if isinstance(c, TimeLimit)), None)
    if limit is not None:
        limit.tick()
    return limit
