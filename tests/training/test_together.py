"""Processes stop at one update, whichever of them is asked to."""

from types import SimpleNamespace

import pytest

from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.limit import TimeIsUp
from keras_attnvariants.training.signals import StopRequest
from keras_attnvariants.training.together import TIME_IS_UP
from keras_attnvariants.training.together import Stopper
from keras_attnvariants.training.together import Together


class Team:
    """A process whose announcements others read; it agrees with what is set."""

    def __init__(self, texts, verdict=None):
        self.texts = texts
        self.verdict = verdict
        self.ends_together = False

    def new_name(self, kind):
        return kind

    def announce(self, name, value):
        self.texts.setdefault(name, value)

    def announced(self, name):
        return self.texts.get(name)

    def agreed(self, value=None):
        return value if self.verdict is None else self.verdict


def processes(count=2):
    texts = {}
    for _ in range(count):
        progress, request = Progress(), StopRequest()
        together = Together(Team(texts), progress, request)
        together.set_model(SimpleNamespace(stop_training=False))
        yield together, progress, request


def update(together, progress):
    """Ends an update; returns whether the process stops after it, and by what."""
    progress.step += 1
    together.on_train_batch_end(0)
    return together.agreed_request.number, together.model.stop_training


@pytest.mark.parametrize("asked", [0, 1])
def test_a_signal_to_one_stops_all_two_updates_later(asked):
    team = list(processes())
    for step in range(1, 7):
        if step == 3:
            team[asked][2].number = 15
        # The last one looks before the others have announced anything.
        ends = [update(together, progress) for together, progress, _ in team]
        assert ends == [(15 if step >= 5 else None, False)] * 2
    assert all(together._team.ends_together for together, _, _ in team)


def test_a_callback_of_process_0_stops_all():
    team = list(processes())
    for step in range(1, 5):
        if step == 2:
            team[0][0].model.stop_training = True
        ends = [update(together, progress) for together, progress, _ in team]
        assert ends == [(None, step >= 4)] * 2


def test_periods_begin_and_end_as_process_0_says():
    [(together, _, _)] = processes(1)
    together.on_epoch_begin(0)
    together._team.verdict = TIME_IS_UP
    with pytest.raises(TimeIsUp):
        together.on_epoch_begin(1)
    together._team.verdict = True
    together.on_epoch_end(1)
    assert together.model.stop_training is True


def test_a_stopper_saves_nothing_and_exits_alike():
    request, progress = StopRequest(), Progress()
    stopper = Stopper(None, progress, {}, request, save_every=1)
    stopper.set_model(SimpleNamespace(stop_training=False))
    progress.step = 1
    stopper.on_train_batch_end(0)
    request.number = 15
    with pytest.raises(SystemExit) as exit_:
        stopper.on_train_batch_end(1)
    assert exit_.value.code == 143
