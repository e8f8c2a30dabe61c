"""Updates are the same however a gradient is stored; schedules are as published."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants.backend.private import moving_averages
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training.optimizers import NoamSchedule
from keras_attnvariants.training.state import read_arrays
from keras_attnvariants.training.state import to_arrays
from tests.training import toy


@pytest.mark.skipif(
    keras.config.backend() != "tensorflow", reason="other backends have no such lists"
)
@pytest.mark.parametrize("clipnorm", [None, 1.0])
def test_rows_of_one_token_count_together(clipnorm):
    def trained(stored):
        variable = keras.Variable(np.ones((3, 1), "float32"))
        config = TrainingConfig(10, 0.1, epsilon=1e-3, clipnorm=clipnorm)
        optimizer = config.optimizer()
        optimizer.build([variable])
        for rows in ([1, 1], [0, 1], [2, 2]):
            values = tf.constant([[3.0], [4.0]])
            gradient = tf.IndexedSlices(values, tf.constant(rows), tf.constant([3, 1]))
            optimizer.apply([stored(gradient)])
        return np.array(variable)

    np.testing.assert_array_equal(trained(lambda g: g), trained(tf.convert_to_tensor))


@pytest.mark.parametrize("step", [0, 10, 3999, 4000, 100_000])
def test_noam_formula(step):
    s = step + 1
    expected = 2.0 * 288**-0.5 * min(s**-0.5, s * 4000**-1.5)
    schedule = NoamSchedule(288, warmup_steps=4000, scale=2.0)
    np.testing.assert_allclose(schedule(step), expected, rtol=1e-5)


def test_noam_from_peak_peaks_there():
    rates = [float(NoamSchedule.from_peak(7e-4, 50)(step)) for step in range(200)]
    assert np.argmax(rates) == 49
    np.testing.assert_allclose(max(rates), 7e-4, rtol=1e-5)


def test_a_schedule_survives_serialization_inside_an_optimizer():
    schedule = NoamSchedule(8, 5, 0.5)
    optimizer = keras.optimizers.Adam(schedule)
    config = keras.saving.serialize_keras_object(optimizer)
    copy = keras.saving.deserialize_keras_object(config)
    assert copy._learning_rate.get_config() == schedule.get_config()


@pytest.mark.parametrize(
    "build",
    [
        lambda: NoamSchedule(0),
        lambda: NoamSchedule(8, warmup_steps=-1),
        lambda: NoamSchedule.from_peak(0.0),
    ],
)
def test_arguments_must_be_positive(build):
    with pytest.raises(ValueError, match=r"must be a positive number\. Received: "):
        build()


class Record(keras.callbacks.Callback):
    """Keeps the weights after each update, and those at the end of a validation."""

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
    averages = to_arrays(moving_averages(model.optimizer))
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
