"""Limits of time and the rates that decay until then, by a clock for tests."""

from types import SimpleNamespace

import pytest

from keras_attnvariants.backend import distribution
from keras_attnvariants.training import TimedDecay
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import TrainingState
from keras_attnvariants.training import load_run
from tests.training import toy


def updates(limit, clock, seconds):
    """Runs updates of these lengths; returns their number."""
    limit.set_model(SimpleNamespace(stop_training=False))
    for number, length in enumerate(seconds, start=1):
        clock.now += length
        limit.on_train_batch_end(number)
        if limit.model.stop_training:
            return number
    return number


def test_time_ends_after_the_next_update(clock):
    limit = TimeLimit(minutes=1)
    limit.tick()
    assert updates(limit, clock, [25] * 9) == 3
    assert limit.get_state() == {"seconds": 75.0, "ended": 60.0}


def test_time_for_the_last_validations_is_kept(clock):
    """The time left is for the weights and the averages, as long as the last took."""
    limit = TimeLimit(minutes=1)
    limit.measure(lambda: setattr(clock, "now", clock.now + 6))
    assert updates(limit, clock, [2] * 99) == 18  # 12 + 36 + 12
    limit = TimeLimit(minutes=1)
    limit.measure(lambda: setattr(clock, "now", clock.now + 6))
    assert updates(limit, clock, [2] * 6) == 6
    clock.now += 5
    limit.on_epoch_end(0)
    assert updates(limit, clock, [2] * 99) == 11  # 12 + 12 + 5 + 22 + 10


def test_no_update_follows_a_validation_that_has_left_no_time(clock):
    limit = TimeLimit(minutes=1)
    limit.tick()
    assert updates(limit, clock, [10, 10]) == 2
    clock.now += 20
    limit.on_epoch_end(0)
    assert limit.model.stop_training


def test_time_goes_on_where_it_stopped(clock):
    first = TimeLimit(minutes=1)
    first.tick()
    assert updates(first, clock, [25]) == 1
    saved = first.get_state()
    assert saved["ended"] is None
    clock.now += 10_000  # the machine was off
    second = TimeLimit(minutes=1)
    second.tick()
    clock.now += 5  # the start of the run
    second.set_state(saved)
    assert updates(second, clock, [15] * 9) == 2


def test_time_between_trainings_does_not_count(clock):
    limit = TimeLimit(minutes=1)
    clock.now += 10_000
    limit.tick()
    assert updates(limit, clock, [25] * 9) == 3


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), "5"])
def test_minutes_must_be_positive(minutes):
    with pytest.raises(ValueError, match="`minutes` must be a positive number"):
        TimeLimit(minutes)


class Ticking(TimeLimit):
    """A limit whose clock advances by a second in every update."""

    def __init__(self, clock, minutes):
        super().__init__(minutes)
        self.clock = clock

    def on_train_batch_end(self, batch, logs=None):
        self.clock.now += 1
        super().on_train_batch_end(batch, logs)


def test_training_ends_when_the_time_is_up(clock, tmp_path, capsys):
    config = toy.toy_config(steps=80, validate_every=30)
    _, result = toy.run(tmp_path, config, callbacks=[Ticking(clock, 0.2)])
    assert result.step == 12 and result.averaged is not None
    assert load_run(tmp_path).model
    assert TrainingState(tmp_path / "state").load_latest().progress["step"] == 12
    events = [record["event"] for record in toy.log(tmp_path)]
    assert events[-2:] == ["period", "averaged"]

    # The same limit has nothing left; a higher one continues the run.
    capsys.readouterr()
    _, result = toy.run(tmp_path, config, callbacks=[Ticking(clock, 0.2)])
    assert result.step == 12
    output = capsys.readouterr().out
    assert (
        " in float32, update 12 of 80, 0:12 of 0:12 spent, 0:00 left.\nIt was stopped"
        in output
    )
    _, result = toy.run(tmp_path, config, callbacks=[Ticking(clock, 0.3)])
    assert result.step == 18
    assert (
        "update 12 of 80, 0:12 of 0:18 spent, 0:06 left.\n" in capsys.readouterr().out
    )
    model, result = toy.run(tmp_path, config)  # and so does no limit
    assert result.step == 80
    undisturbed, _ = toy.run(tmp_path / "other", config)
    assert toy.same(toy.variables(model), toy.variables(undisturbed))


def test_a_run_stopped_by_another_callback_does_not_go_on_for_its_time(clock, tmp_path):
    config = toy.toy_config(steps=80, patience=1, learning_rate=1e-9)
    _, result = toy.run(tmp_path, config, callbacks=[Ticking(clock, 9)])
    assert result.step == 16
    _, again = toy.run(tmp_path, config, callbacks=[Ticking(clock, 10)])
    assert again == result


def rates(clock, limit, seconds):
    """The rates of updates that take so many seconds each, until the limit ends."""
    found = []
    limit.tick()
    limit.set_model(SimpleNamespace(stop_training=False))
    for number, length in enumerate(seconds):
        found.append(limit.rate(number))
        clock.now += length
        limit.on_train_batch_end(number)
        if limit.model.stop_training:
            break
    return found


@pytest.mark.parametrize("pace", [0.5, 1.0, 6.0])
def test_the_rate_has_decayed_when_the_time_is_up_at_any_pace(clock, pace):
    limit = TimedDecay(minutes=10, steps=100_000, peak=1e-3, warmup_steps=10)
    found = rates(clock, limit, [pace] * 9999)
    assert len(found) == 600 / pace
    assert found[:9] == pytest.approx([1e-4 * n for n in range(1, 10)], rel=0.03)
    assert max(found) == pytest.approx(1e-3, rel=0.03)
    assert found[len(found) // 2] == pytest.approx(0.51e-3, rel=0.03)
    assert found[-1] == pytest.approx(2e-5, rel=0.2)


def test_the_rate_decays_with_the_updates_where_those_end_first(clock):
    limit = TimedDecay(minutes=10, steps=100, peak=1e-3, warmup_steps=10)
    found = rates(clock, limit, [1.0] * 100)
    assert found[50] == pytest.approx(0.51e-3)
    assert found[-1] == pytest.approx(2e-5, rel=0.05)


def test_the_rate_follows_a_pace_that_changes(clock):
    limit = TimedDecay(minutes=10, steps=100_000, peak=1e-3, warmup_steps=1)
    found = rates(clock, limit, [1.0] * 300 + [5.0] * 9999)
    assert len(found) == 360
    assert found[-1] == pytest.approx(2e-5, rel=0.2)


class TickingDecay(TimedDecay):
    """One whose clock advances by a second in every update."""

    def __init__(self, clock, *args):
        super().__init__(*args)
        self.clock = clock

    def on_train_batch_end(self, batch, logs=None):
        self.clock.now += 1
        super().on_train_batch_end(batch, logs)


def test_a_run_has_the_rate_of_its_limit(clock, tmp_path):
    """So has one that is resumed, whose rate goes on where it was."""
    config = toy.toy_config(steps=400, learning_rate=1e-2, log_every=1)
    limit = TickingDecay(clock, 0.5, 400, 1e-2, 5)
    toy.run(tmp_path, config, callbacks=[limit])
    logged = [r for r in toy.log(tmp_path) if r["event"] == "updates"]
    assert len(logged) == 30
    found = [record["learning_rate"] for record in logged]
    assert found[3] == pytest.approx(1e-2 * 0.8, rel=0.05)
    assert found[15] == pytest.approx(0.51e-2, rel=0.1)
    assert found[-1] == pytest.approx(2e-4, rel=0.2)

    longer = TickingDecay(clock, 1, 400, 1e-2, 5)
    toy.run(tmp_path, config, callbacks=[longer])
    found = [r["learning_rate"] for r in toy.log(tmp_path) if r["event"] == "updates"]
    assert len(found) == 60
    assert found[31] == pytest.approx(0.51e-2, rel=0.1)


def test_a_schedule_cannot_have_another_rate(clock, tmp_path):
    limit = TimedDecay(1, 80, 1e-2, 5)
    with pytest.raises(TypeError, match="learning rate"):
        toy.run(tmp_path, toy.toy_config(steps=80), callbacks=[limit])


def test_rates_of_several_processes_would_differ(monkeypatch):
    monkeypatch.setattr(distribution, "process_count", lambda: 2)
    with pytest.raises(ValueError, match="Received: 2 processes"):
        TimedDecay(1, 80, 1e-2, 5)


@pytest.mark.parametrize("numbers", [(0, 1.0, 1), (1, 0.0, 1), (1, 1.0, 0)])
def test_numbers_of_a_decay_must_be_positive(numbers):
    with pytest.raises(ValueError, match="must be a positive"):
        TimedDecay(1, *numbers)
