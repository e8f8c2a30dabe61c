"""A disturbed run ends with exactly the weights and log of an undisturbed one."""

import errno
import os
import random
import signal

import keras
import numpy as np
import pytest

from keras_attnvariants import backend
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.training import StatefulCallback
from keras_attnvariants.training import StateWriteError
from keras_attnvariants.training import TrainingState
from keras_attnvariants.training.run_settings import DifferentSettingsError
from keras_attnvariants.training.state import to_arrays
from tests.training import toy
from tests.training.faults import full_disk_after

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning"),
]


class Disturb(keras.callbacks.Callback):
    """Calls a function after some update, batch of validation, or validation."""

    def __init__(self, action, train_batch=None, test_batch=None, period=None):
        super().__init__()
        self.action = action
        self.train_batch = train_batch
        self.test_batch = test_batch
        self.period = period
        self.trained = self.tested = 0

    def on_train_batch_end(self, batch, logs=None):
        self.trained += 1
        if self.trained == self.train_batch:
            self.action()

    def on_test_batch_end(self, batch, logs=None):
        self.tested += 1
        if self.tested == self.test_batch:
            self.action()

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self.period:
            self.action()


class Crash(Exception):
    """Stands for whatever ends a process."""


def crash():
    raise Crash


def stop_training(**when):
    """Ends the run as Keras callbacks do."""
    stop = Disturb(lambda: setattr(stop.model, "stop_training", True), **when)
    return stop


OPTIONS = {"accumulate": 3, "ema": 0.9}


def log(folder):
    """The log without the entries that depend on the clock."""
    records = toy.log(folder)
    for record in records:
        record.pop("seconds")
        record.pop("tokens_per_second", None)
    return records


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    model, result = toy.run(folder)
    return folder, toy.variables(model), result


def assert_same_end(folder, undisturbed, **kwargs):
    """Finishes a run and compares everything."""
    reference, variables, result = undisturbed
    # Weights and dropout of a run that has a state must come from there.
    model = toy.toy_model(seed=99 if any(folder.glob("state/*")) else 1)
    model, again = toy.run(folder, model=model, **kwargs)
    assert toy.same(toy.variables(model), variables)
    assert again == result
    assert log(folder) == log(reference)
    for name in ("best", "averaged"):
        ours, theirs = (load_model(run / name).model for run in (folder, reference))
        assert toy.same(to_arrays(ours.weights), to_arrays(theirs.weights))


def test_dropout_is_at_work(undisturbed, tmp_path):
    """Dropout matters: otherwise these tests would not notice a lost seed."""
    model, _ = toy.run(tmp_path, model=toy.toy_model(dropout=0.0))
    assert not toy.same(to_arrays(model.weights), undisturbed[1][: len(model.weights)])


def test_crashes(undisturbed, tmp_path, monkeypatch):
    """Crashes come at random updates, in and after a validation, and after the last."""
    generator = random.Random(4)
    updates = [{"train_batch": generator.randint(1, 8)} for _ in range(4)]
    for when in (*updates, {"period": 1}, {"test_batch": 5}):
        with pytest.raises(Crash):
            toy.run(tmp_path, callbacks=[Disturb(crash, **when)])
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(
            "keras_attnvariants.training.run_folder.RunFolder.averages",
            lambda self: crash(),
        )
        toy.run(tmp_path)
    assert_same_end(tmp_path, undisturbed)


def stopped_by(number, folder, **when):
    """The exit status of a run that gets a signal, and the progress that it saved."""
    send = Disturb(lambda: os.kill(os.getpid(), number), **when)
    with pytest.raises(SystemExit) as exit_:
        toy.run(folder, callbacks=[send])
    return exit_.value.code, TrainingState(folder / "state").load_latest().progress


def test_a_signal_saves_and_exits(undisturbed, tmp_path, capsys):
    """Signals come in a validation, after one, and after updates without a state."""
    for when, step in (({"test_batch": 2}, 8), ({"period": 1}, 16)):
        code, progress = stopped_by(signal.SIGTERM, tmp_path, **when)
        assert code == 143 and progress["step"] == step
        assert progress["validation_pending"] == ("test_batch" in when)
    capsys.readouterr()
    for number, step in ((signal.SIGTERM, 19), (signal.SIGINT, 22)):
        code, progress = stopped_by(number, tmp_path, train_batch=3)
        assert code == 128 + number and progress["step"] == step
        text = f"Stopped by a signal at step {step}; saved"
        assert text in capsys.readouterr().out
    assert_same_end(tmp_path, undisturbed)


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(tmp_path, precision):
    keras.config.set_dtype_policy(precision)
    config = toy.toy_config(steps=8, precision=precision)
    whole, result = toy.run(tmp_path / "whole", config)
    with pytest.raises(Crash):
        toy.run(tmp_path / "parts", config, callbacks=[Disturb(crash, train_batch=5)])
    model, again = toy.run(tmp_path / "parts", config, toy.toy_model(seed=99))
    assert again == result
    assert toy.same(toy.variables(model), toy.variables(whole))


def test_damaged_state_costs_some_updates_only(undisturbed, tmp_path, capsys):
    with pytest.raises(Crash):
        toy.run(tmp_path, callbacks=[Disturb(crash, train_batch=14)])
    latest = max((tmp_path / "state").iterdir())
    with (latest / "variables.npz").open("r+b") as file:
        file.truncate(1000)
    capsys.readouterr()
    assert_same_end(tmp_path, undisturbed)
    assert capsys.readouterr().err.count("\n") == 1


def test_full_disks_end_the_run_and_it_can_be_resumed(
    undisturbed, tmp_path, monkeypatch
):
    """The disk is full at the first byte, or later."""
    for limit in (0, 40_000):
        with monkeypatch.context() as patch, pytest.raises(OSError) as error:
            full_disk_after(patch, limit)
            toy.run(tmp_path)
        assert error.value.errno == errno.ENOSPC
    assert_same_end(tmp_path, undisturbed)


def test_full_disk_says_what_is_safe(tmp_path, monkeypatch):
    with pytest.raises(Crash):
        toy.run(tmp_path, callbacks=[Disturb(crash, train_batch=4)])
    full_disk_after(monkeypatch, 5000)
    with pytest.raises(StateWriteError, match=f"{tmp_path} could not be written"):
        toy.run(tmp_path)


@pytest.fixture(scope="module")
def undisturbed_with_options(tmp_path_factory):
    """A run with all options that change what an update is."""
    folder = tmp_path_factory.mktemp("options")
    model, result = toy.run(folder, toy.toy_config(**OPTIONS))
    return folder, toy.variables(model), result


def test_options_are_resumed(undisturbed_with_options, tmp_path):
    """It resumes after crashes in an update, in a validation and between batches."""
    config = toy.toy_config(**OPTIONS)
    for disturb in (
        Disturb(crash, train_batch=5),
        Disturb(crash, test_batch=2),
        Disturb(crash, train_batch=5),
    ):
        with pytest.raises(Crash):
            toy.run(tmp_path, config, callbacks=[disturb])
    with pytest.raises(UserWarning, match="ran out of data"):
        cut = OPTIONS["accumulate"] * 2 + 1  # from update 12 on
        data = toy.dataset_at
        toy.run(tmp_path, config, training_data=lambda step: data(step).take(cut))
    assert_same_end(tmp_path, undisturbed_with_options, config=config)


def test_a_signal_in_a_validation_saves_the_weights(undisturbed_with_options, tmp_path):
    """The saved weights are not the averages, which the validation uses."""
    config = toy.toy_config(**OPTIONS)
    stop = Disturb(lambda: os.kill(os.getpid(), signal.SIGTERM), test_batch=2)
    with pytest.raises(SystemExit):
        toy.run(tmp_path, config, callbacks=[stop])
    assert_same_end(tmp_path, undisturbed_with_options, config=config)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="of TensorFlow alone")
def test_parts_of_batches_make_the_same_run_and_are_resumed(monkeypatch, tmp_path):
    def run(folder, dropout, parts, **options):
        monkeypatch.setattr(backend, "parallel_parts", lambda model: parts)
        model, _ = toy.run(folder, model=toy.toy_model(dropout=dropout), **options)
        return toy.variables(model)

    whole, parts = (run(tmp_path / str(n), 0.0, parts=n) for n in (1, 3))
    assert not toy.same(whole, parts)  # other roundings
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    reference = run(tmp_path / "reference", 0.5, parts=2)
    with pytest.raises(Crash):
        disturb = Disturb(crash, train_batch=5)
        run(tmp_path / "resumed", 0.5, parts=2, callbacks=[disturb])
    assert toy.same(run(tmp_path / "resumed", 0.5, parts=2), reference)


@pytest.mark.parametrize("option", OPTIONS)
def test_a_resume_without_an_option_is_refused(undisturbed_with_options, option):
    folder, _, _ = undisturbed_with_options
    others = {name: OPTIONS[name] for name in OPTIONS if name != option}
    with pytest.raises(DifferentSettingsError, match=f"`{option}`"):
        toy.run(folder, toy.toy_config(**others))


class Memory(StatefulCallback):
    """Counts updates over resumes."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def get_state(self):
        return {"count": self.count}

    def set_state(self, state):
        self.count = state["count"]

    def on_train_batch_end(self, batch, logs=None):
        self.count += 1


def test_callbacks_of_the_caller_are_resumed(undisturbed, tmp_path):
    with pytest.raises(Crash):
        toy.run(tmp_path, callbacks=[Memory(), Disturb(crash, train_batch=14)])
    memory = Memory()
    assert_same_end(tmp_path, undisturbed, callbacks=[memory])
    assert memory.count == 26


class Named(Memory):
    def __init__(self, name):
        super().__init__()
        self._name = name

    @property
    def state_name(self):
        return self._name


def test_a_callback_keeps_its_state_when_others_come_and_go(tmp_path):
    """Others are added, before it or with their own names; one resume is without it."""

    def counts(steps, *callbacks):
        toy.run(tmp_path, toy.toy_config(steps=steps), callbacks=callbacks)
        return [callback.count for callback in callbacks if hasattr(callback, "count")]

    assert counts(8, Memory(), Named("first")) == [8, 8]
    other = keras.callbacks.Callback()
    assert counts(16, other, Memory(), Named("second"), Named("first")) == [16, 8, 16]
    assert counts(24) == []
    assert counts(32, Memory(), Named("first")) == [24, 24]


def test_a_callback_ends_the_run_by_stop_training(undisturbed, tmp_path):
    """Stops come in a validation, after an update, and after a validation."""
    for when, step, steps in (
        ({"test_batch": 2}, 8, 26),
        ({"train_batch": 3}, 11, 25),
        ({"period": 1}, 16, 26),
    ):
        config = toy.toy_config(steps=steps)
        model, result = toy.run(tmp_path, config, callbacks=[stop_training(**when)])
        assert result.stopped_early and result.step == step
        assert result.averaged is not None
        latest = TrainingState(tmp_path / "state").load_latest()
        assert latest.progress["step"] == step and latest.progress["stopped"]
        assert toy.same(latest.variables["model"], to_arrays(model.variables))
        assert toy.log(tmp_path)[-2]["event"] == "period"
        assert toy.log(tmp_path)[-2]["step"] == step
        # The same call changes nothing; another number of updates continues the run.
        _, again = toy.run(tmp_path, config)
        assert again == result
    toy.run(tmp_path, toy.toy_config(steps=25))
    model, result = toy.run(tmp_path)
    assert result.step == 26 and not result.stopped_early
    assert toy.same(toy.variables(model), undisturbed[1])


def test_killed_in_the_validation_after_stop_training(tmp_path):
    first = stop_training(train_batch=12)
    with pytest.raises(Crash):
        toy.run(tmp_path, callbacks=[first, Disturb(crash, test_batch=5)])
    _, result = toy.run(tmp_path)
    assert result.stopped_early and result.step == 12


def test_early_stopping_of_keras_ends_the_run(tmp_path):
    patient = keras.callbacks.EarlyStopping("val_loss", min_delta=1.0, patience=2)
    _, result = toy.run(tmp_path, toy.toy_config(steps=80), callbacks=[patient])
    assert result.stopped_early and result.step == 24
