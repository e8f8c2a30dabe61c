"""The log and the guard against numbers that are not finite."""

import math
import os
import signal
import threading

import keras
import numpy as np
import pytest

from keras_attnvariants.training import DivergedError
from keras_attnvariants.training import NonFiniteError
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.callbacks import StepCounter
from keras_attnvariants.training.callbacks import StopRequest
from tests.training import toy

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


class Spoil(keras.callbacks.Callback):
    """Makes a weight NaN after some update."""

    def __init__(self, step):
        super().__init__()
        self.left = step

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            variable = self.model.logits.kernel
            variable.assign(np.full(variable.shape, np.nan, "float32"))


@pytest.mark.parametrize("step", [2, 8])
def test_nothing_that_is_not_finite_is_saved(tmp_path, step):
    """No state (every 3 updates) and no files of a validation (after 8) are left."""
    config = toy.toy_config(steps=16, validate_every=8, save_every=3)
    with pytest.raises(NonFiniteError, match=r"not finite|loss is nan"):
        toy.run(tmp_path, config, callbacks=[Spoil(step)])
    for path in (tmp_path / "state").glob("*/variables.npz"):
        with np.load(path) as arrays:
            assert all(np.isfinite(arrays[key]).all() for key in arrays.files)
    assert not (tmp_path / "best").exists()
    assert not (tmp_path / "checkpoints").exists()
    # Without the cause, the run continues from the last good state.
    _, result = toy.run(tmp_path, config)
    assert result.step == 16


def test_counter_names_the_step_of_an_infinite_loss():
    counter = StepCounter(Progress(step=41), classes=20)
    with pytest.raises(NonFiniteError, match="step 42: the loss is inf"):
        counter.on_train_batch_end(0, {"loss": math.inf})


def test_data_that_ends_is_refused(tmp_path):
    model = toy.toy_model()
    with (
        pytest.warns(UserWarning, match="ran out of data"),
        pytest.raises(ValueError, match="endless dataset. Received: .* at step 5"),
    ):
        toy.train(
            model,
            None,
            lambda step: toy.dataset_at(step).take(5 - step),
            tmp_path,
            toy.toy_config(),
            verbose=0,
        )


def test_a_loss_far_above_a_uniform_guess_ends_the_run(tmp_path):
    config = toy.toy_config(learning_rate=1e6, validate_every=4)
    with pytest.raises(
        DivergedError, match=r"step 4: the val_loss is .*20 tokens is 2.99"
    ):
        toy.run(tmp_path, config)
    assert not (tmp_path / "best").exists()


@pytest.mark.parametrize(("factor", "diverged"), [(3.9, False), (4.1, True)])
def test_bound_of_divergence_is_four_times_a_uniform_guess(factor, diverged):
    counter = StepCounter(Progress(step=41), classes=20)
    counter.progress.period_end = 41
    counter.set_model(toy.toy_model())
    logs = {"loss": 99.0, "val_loss": factor * math.log(20)}
    if diverged:
        with pytest.raises(DivergedError):
            counter.on_epoch_end(0, logs)
    else:
        counter.on_epoch_end(0, logs)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_first_signal_is_noted(number, code):
    before = signal.getsignal(number)
    with StopRequest() as request:
        assert request.number is None
        os.kill(os.getpid(), number)
        assert request.number == number
        assert request.exit_code == code
    assert signal.getsignal(number) == before


@pytest.fixture
def interruptible():
    """Interrupts as in a terminal: shells let background processes ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_second_interrupt_acts_at_once(interruptible):
    with pytest.raises(KeyboardInterrupt), StopRequest():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_outside_the_main_thread_nothing_is_caught():
    before = signal.getsignal(signal.SIGTERM)
    during = []

    def work():
        with StopRequest():
            during.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert during == [before]
