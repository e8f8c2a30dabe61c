"""Python searches for garbage again after the first batch, and after an error."""

import gc

import keras
import numpy as np
import pytest

from keras_attnvariants.training.tracing import UndisturbedTracing


class Watcher(keras.callbacks.Callback):
    """Notes whether garbage is searched for at the begin and the end of batches."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_begin(self, batch, logs=None):
        self.seen.append(gc.isenabled())

    on_test_batch_begin = on_train_batch_begin

    def on_epoch_end(self, epoch, logs=None):
        self.seen.append(gc.isenabled())


@pytest.fixture
def model():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    return model


def test_first_batches_are_spared(model):
    data, watcher = (np.zeros((2, 1)), np.zeros((2, 1))), Watcher()
    callbacks = [UndisturbedTracing(), watcher]
    options = {"batch_size": 1, "verbose": 0, "validation_data": data}
    model.fit(*data, epochs=2, callbacks=callbacks, **options)
    # Two updates, two batches of validation and the end of each period.
    assert watcher.seen == [False, True, False, True, True] * 2
    assert gc.isenabled()


def test_callbacks_without_batches_are_not_spared(model):
    """A validation is resumed like that, and may translate for long."""
    tracing = UndisturbedTracing()
    for begin in (tracing.on_train_begin, tracing.on_test_begin):
        begin()
        assert gc.isenabled()


def test_an_error_is_followed_by_searches_when_closed(model):
    tracing = UndisturbedTracing()
    with pytest.raises(ValueError), pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "train_step", lambda data: int("no number"))
        model.fit(np.zeros((2, 1)), np.zeros((2, 1)), callbacks=[tracing], verbose=0)
    assert not gc.isenabled()
    tracing.close()
    assert gc.isenabled()
