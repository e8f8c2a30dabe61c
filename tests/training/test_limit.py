"""Ending on time, by a clock that the tests turn."""

from types import SimpleNamespace

import pytest

from keras_attnvariants.training import TrainingConfig


class Clock:
    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(recipe, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(recipe("limit"), "time", clock)
    return clock


def periods(limit, clock, seconds):
    """Goes through periods of these lengths; returns how many were begun."""
    limit.on_train_begin()
    for number, length in enumerate(seconds):
        limit.on_epoch_begin(number)
        clock.now += length
        limit.on_epoch_end(number)
    return number + 1


def test_a_period_that_would_end_late_is_not_begun(recipe, clock):
    module = recipe("limit")
    limit = module.TimeLimit(minutes=1)
    assert periods(limit, clock, [20, 20]) == 2
    limit.on_epoch_begin(2)  # would end after 60 seconds, in time
    clock.now += 5
    limit.on_epoch_end(2)
    limit.on_epoch_begin(3)
    clock.now += 8
    limit.on_epoch_end(3)
    with pytest.raises(module.TimeIsUp):
        limit.on_epoch_begin(4)


def test_the_first_period_is_always_done(recipe, clock):
    module = recipe("limit")
    limit = module.TimeLimit(minutes=1)
    assert periods(limit, clock, [500]) == 1
    with pytest.raises(module.TimeIsUp):
        limit.on_epoch_begin(1)


def test_time_goes_on_where_it_stopped(recipe, clock):
    module = recipe("limit")
    first = module.TimeLimit(minutes=1)
    periods(first, clock, [25])
    saved = first.get_state()
    clock.now += 10_000  # the machine was off
    second = module.TimeLimit(minutes=1)
    second.set_state(saved)
    assert periods(second, clock, [25]) == 1
    with pytest.raises(module.TimeIsUp):
        second.on_epoch_begin(1)


def test_time_between_trainings_does_not_count(recipe, clock):
    limit = recipe("limit").TimeLimit(minutes=1)
    clock.now += 10_000
    assert periods(limit, clock, [25, 25]) == 2


def test_training_ends_with_the_updates_that_were_done(recipe, monkeypatch):
    module = recipe("limit")
    limit = module.TimeLimit(minutes=1)
    limit.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=300)))
    calls = []

    def train(*arguments, config, callbacks):
        calls.append(config.steps)
        assert callbacks == [limit]
        if config.steps > 300:
            raise module.TimeIsUp
        return "result"

    monkeypatch.setattr(module, "train", train)
    config = TrainingConfig(steps=5000, learning_rate=1e-3)
    assert module.train_within(limit, "model", config=config) == "result"
    assert calls == [5000, 300]


def test_a_bar_shows_the_time_that_has_gone(recipe, clock):
    limit = recipe("bar").TimeLimitBar(minutes=1, steps=100)
    limit.bar.disable = True
    limit.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=20)))
    limit.on_train_begin()
    clock.now += 30
    limit.on_train_batch_end(0, {"loss": 2.5})
    [task] = limit.bar.tasks
    assert task.completed == 0.5
    assert task.description == "update 20, loss 2.50"
    limit.model.optimizer.iterations = 90
    limit.on_train_batch_end(1, {"loss": 2.25})
    assert task.completed == 0.9
