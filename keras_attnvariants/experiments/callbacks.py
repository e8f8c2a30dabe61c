"""Callbacks of the runs of a comparison: what they cost, and how far they are."""

import time
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import keras

from keras_attnvariants.training import StatefulCallback
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.tuning.results import peak_mib

# Told how far a run is, from 0 to 1, and what it does.
Report = Callable[[float, str], None]


class CostMeter(StatefulCallback):
    """Counts what training costs this process, over all resumes.

    Attributes:
        memory_mib: largest resident memory so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory_mib = 0.0
        self._before = 0.0
        self._start: float | None = None

    @property
    def cpu_seconds(self) -> float:
        """Seconds of all processors together."""
        spent = 0.0 if self._start is None else time.process_time() - self._start
        return self._before + spent

    def get_state(self) -> dict[str, Any]:
        self.memory_mib = max(self.memory_mib, peak_mib())
        return {"cpu_seconds": self.cpu_seconds, "memory_mib": self.memory_mib}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._before, self.memory_mib = state["cpu_seconds"], state["memory_mib"]

    def on_train_begin(self, logs: Any = None) -> None:
        if self._start is None:
            self._start = time.process_time()

    def on_train_end(self, logs: Any = None) -> None:
        self.memory_mib = max(self.memory_mib, peak_mib())


class Reporter(keras.callbacks.Callback):
    """Tells, once a second at most, how far a training is.

    Args:
        report: is told.
        steps: updates of the whole run.
        limit: its `TimeLimit`, if it has one.
    """

    def __init__(self, report: Report, steps: int, limit: TimeLimit | None) -> None:
        super().__init__()
        self._report = report
        self._steps = steps
        self._limit = limit
        self._next = 0.0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + 1.0
        step = int(self.model.optimizer.iterations)
        done = step / self._steps
        if self._limit is not None:
            done = max(done, self._limit.seconds / self._limit.limit)
        loss = (logs or {}).get("loss", 0.0)
        self._report(min(done, 1.0), f"update {step:,}, loss {loss:.2f}")
