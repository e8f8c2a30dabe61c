"""Ending on time, by a clock that the tests turn."""

import pytest

from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import limit as limit_module
from keras_attnvariants.training.limit import TimeIsUp
from tests.training import toy


class Clock:
    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(limit_module, "time", clock)
    return clock


def periods(limit, clock, seconds):
    """Goes through periods of these lengths; returns how many were begun."""
    limit.on_train_begin()
    for number, length in enumerate(seconds):
        limit.on_epoch_begin(number)
        clock.now += length
        limit.on_epoch_end(number)
    return number + 1


def test_a_period_that_would_end_late_is_not_begun(clock):
    limit = TimeLimit(minutes=1)
    assert periods(limit, clock, [20, 20]) == 2
    limit.on_epoch_begin(2)  # would end after 60 seconds, in time
    clock.now += 5
    limit.on_epoch_end(2)
    limit.on_epoch_begin(3)
    clock.now += 8
    limit.on_epoch_end(3)
    with pytest.raises(TimeIsUp):
        limit.on_epoch_begin(4)


def test_the_first_period_is_always_done(clock):
    limit = TimeLimit(minutes=1)
    assert periods(limit, clock, [500]) == 1
    with pytest.raises(TimeIsUp):
        limit.on_epoch_begin(1)


def test_time_goes_on_where_it_stopped(clock):
    first = TimeLimit(minutes=1)
    periods(first, clock, [25])
    saved = first.get_state()
    clock.now += 10_000  # the machine was off
    second = TimeLimit(minutes=1)
    second.set_state(saved)
    assert periods(second, clock, [25]) == 1
    with pytest.raises(TimeIsUp):
        second.on_epoch_begin(1)


def test_time_between_trainings_does_not_count(clock):
    limit = TimeLimit(minutes=1)
    clock.now += 10_000
    assert periods(limit, clock, [25, 25]) == 2


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), "5"])
def test_minutes_must_be_positive(minutes):
    with pytest.raises(ValueError, match="`minutes` must be a positive number"):
        TimeLimit(minutes)


class Ticking(TimeLimit):
    """A limit whose clock goes on by a second in every update."""

    def on_train_batch_end(self, batch, logs=None):
        limit_module.time.now += 1
        super().on_train_batch_end(batch, logs)


@pytest.mark.slow
def test_training_ends_with_the_updates_that_were_done(clock, tmp_path):
    config = toy.toy_config(steps=80)  # periods of 8 updates
    _, result = toy.run(tmp_path, config, callbacks=[Ticking(0.3)])
    assert result.step == 16  # 24 would end after 18 seconds
    assert result.averaged is not None
    assert (tmp_path / "averaged").is_dir()
    events = [record["event"] for record in toy.log(tmp_path)]
    assert events[-2:] == ["period", "averaged"]

    # The same limit has nothing left; a higher one continues the run.
    _, result = toy.run(tmp_path, config, callbacks=[Ticking(0.3)])
    assert result.step == 16
    model, result = toy.run(tmp_path, config, callbacks=[Ticking(10)])
    assert result.step == 80
    undisturbed, _ = toy.run(tmp_path / "other", config)
    assert toy.same(toy.variables(model), toy.variables(undisturbed))
