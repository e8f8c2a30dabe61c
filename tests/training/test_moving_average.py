"""Moving averages of the weights: their values, and where they stand for weights."""

import keras
import numpy as np
import pytest

from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training.state import read_arrays
from keras_attnvariants.training.state import to_arrays
from tests.training import toy

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


class Record(keras.callbacks.Callback):
    """Keeps the weights after each update, and those that a validation ends with."""

    def __init__(self):
        super().__init__()
        self.updated, self.validated = [], []

    def on_train_batch_end(self, batch, logs=None):
        self.updated.append(to_arrays(self.model.trainable_variables))

    def on_epoch_end(self, epoch, logs=None):
        self.validated.append(to_arrays(self.model.trainable_variables))


def by_hand(updated, momentum):
    averages = [array.astype("float64") for array in updated[0]]
    yield averages
    for weights in updated[1:]:
        pairs = zip(averages, weights, strict=True)
        averages = [momentum * a + (1 - momentum) * w for a, w in pairs]
        yield averages


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("averages")
    record = Record()
    config = toy.toy_config(steps=18, ema=0.8)
    model, result = toy.run(folder, config, callbacks=[record])
    return folder, model, result, record


def test_averages_are_those_computed_by_hand(run):
    _, model, _, record = run
    assert len(record.updated) == 18
    *_, expected = by_hand(record.updated, 0.8)
    averages = to_arrays(model.optimizer.averages)
    for average, array in zip(averages, expected, strict=True):
        np.testing.assert_allclose(average, array, rtol=1e-5, atol=1e-6)


def test_the_updates_go_on_from_the_weights(run, tmp_path):
    """The same run without averages has the same weights."""
    _, model, _, _ = run
    plain, _ = toy.run(tmp_path, toy.toy_config(steps=18))
    assert toy.same(to_arrays(plain.variables), to_arrays(model.variables))


def test_validations_and_their_models_have_the_averages(run):
    folder, _, result, record = run
    expected = list(by_hand(record.updated, 0.8))
    steps = (8, 16, 18)
    for step, weights in zip(steps, record.validated, strict=True):
        saved = read_arrays(folder / f"checkpoints/step-{step:09d}" / "weights.npz")
        assert toy.same(saved["model"], weights)
        for array, average in zip(weights, expected[step - 1], strict=True):
            np.testing.assert_allclose(array, average, rtol=1e-5, atol=1e-6)
    best = load_model(folder / "best").model
    place = steps.index(result.best_step)
    assert toy.same(to_arrays(best.weights), record.validated[place])


@pytest.mark.parametrize("bleu", [True, False])
def test_without_validation_data(tmp_path, bleu):
    record = Record()
    config = toy.toy_config(steps=8, ema=0.5)
    toy.run(tmp_path, config, callbacks=[record], validation_data=None, bleu=bleu)
    *_, expected = by_hand(record.updated, 0.5)
    for array, average in zip(record.validated[0], expected, strict=True):
        np.testing.assert_allclose(array, average, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ema", [1.0, -0.1, "0.9"])
def test_momentum_must_be_a_rate(ema):
    with pytest.raises(ValueError, match="`ema`"):
        TrainingConfig(1, 1.0, ema=ema)
