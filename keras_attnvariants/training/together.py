"""Callbacks that keep the processes of a training together."""

from typing import Any

import keras

from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.callbacks import StateSaver
from keras_attnvariants.training.limit import TimeIsUp
from keras_attnvariants.training.signals import StopRequest
from keras_attnvariants.training.team import Team

TIME_IS_UP = "time is up"


class Together(keras.callbacks.Callback):
    """Lets all processes begin periods, and end the training, at the same update.

    It comes after the callbacks that decide, which process 0 alone has. No process can
    finish an update before all others have begun it. So all have read, at the end of
    the next one, what is announced at the end of an update, and stop one later still.

    Args:
        team: the processes.
        progress: where the run stands.
        request: whether this process got a signal.

    Attributes:
        agreed_request: the signal that all of them answer now.
    """

    def __init__(self, team: Team, progress: Progress, request: StopRequest) -> None:
        super().__init__()
        self._team = team
        self._progress = progress
        self._request = request
        self._announced = False
        # At which update to end, and by which signal if any.
        self._stop = team.new_name("stop")
        self.agreed_request = StopRequest()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        if self._team.agreed("go") == TIME_IS_UP:
            raise TimeIsUp

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        step, number = self._progress.step, self._request.number
        if (number or self.model.stop_training) and not self._announced:
            self._announced = True
            self._team.announce(self._stop, [step + 2, number])
        self.model.stop_training = False
        stop: Any = self._team.announced(self._stop)
        if stop is not None and step >= stop[0]:
            self._team.ends_together = True
            self.agreed_request.number = stop[1]
            self.model.stop_training = stop[1] is None

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self.model.stop_training = self._team.agreed(bool(self.model.stop_training))


class Stopper(StateSaver):
    """Stops a process as `StateSaver` does, and saves nothing."""

    def _save(self) -> None:
        if self._substitute is not None:
            self._substitute.take_out()
        if self._request.number:
            raise SystemExit(self._request.exit_code)
