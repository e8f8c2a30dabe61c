"""Averages of weights: of the last validated steps, and moving ones."""

import shutil

import keras
import ml_dtypes
import numpy as np
import pytest

from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training.averaging import CheckpointAverager
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.state import read_arrays
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.utils.files import DamagedFolderError
from tests.training import toy
from tests.training.toy import same

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


class Weights:
    """As much of a model as averaging needs."""

    def __init__(self, *values):
        self.weights = [keras.Variable(value) for value in values]

    def arrays(self):
        return [np.asarray(weight.numpy()) for weight in self.weights]


def keep(directory, models, last=5):
    progress = Progress()
    averager = CheckpointAverager(directory, last, progress)
    for step, model in enumerate(models, 1):
        progress.step = step
        averager.set_model(model)
        averager.on_epoch_end(0)
    return averager


def random_weights(seed, dtype="float32"):
    values = np.random.default_rng(seed).normal(size=(4, 3)).astype(dtype)
    return Weights(values, np.array(seed, "int32"))


@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_average_of_identical_weights_is_the_same_bit_by_bit(tmp_path, dtype, count):
    model = random_weights(1, dtype)
    averager = keep(tmp_path, [model] * count)
    assert same(averager.mean(), model.arrays())
    assert averager.count == count


def test_average_of_two_is_their_mean(tmp_path):
    first, second = map(random_weights, (1, 2))
    found, number = keep(tmp_path, [first, second]).mean()
    mean = (first.arrays()[0] + second.arrays()[0]) / 2
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-7)
    assert number == 2  # integers are not averaged


def test_only_the_last_are_kept(tmp_path):
    models = [random_weights(seed) for seed in range(5)]
    averager = keep(tmp_path, models, last=2)
    assert len(list(tmp_path.iterdir())) == 2
    found, _ = averager.mean()
    assert averager.count == 2
    mean = (models[3].arrays()[0].astype("float64") + models[4].arrays()[0]) / 2
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-7)


def test_damaged_weights_are_left_out_and_named(tmp_path, capsys):
    averager = keep(tmp_path, [random_weights(1), random_weights(2)])
    (tmp_path / "step-000000002/weights.npz").write_bytes(b"PK")
    assert same(averager.mean(), random_weights(1).arrays())
    assert averager.count == 1
    assert "step-000000002 is damaged" in capsys.readouterr().err


def test_steps_still_to_be_done_are_forgotten(tmp_path):
    averager = keep(tmp_path, [random_weights(seed) for seed in range(4)])
    (tmp_path / "tmp-step-000000005").mkdir()
    averager.remove_after(2)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["step-000000001", "step-000000002"]
    averager.mean()
    assert averager.count == 2


def test_weights_that_are_gone_are_named(tmp_path, capsys):
    averager = keep(tmp_path, [random_weights(seed) for seed in range(5)], last=3)
    state = averager.get_state()
    assert state == {"steps": [3, 4, 5]}
    averager.set_state(state)
    # Weights of a later step made way for those of step 6, and then the process died.
    later = keep(tmp_path, [random_weights(seed) for seed in range(6)], last=3)
    later.set_state(state)
    assert capsys.readouterr().err == ""
    shutil.rmtree(tmp_path / "step-000000005")
    later.set_state(state)
    [line] = capsys.readouterr().err.splitlines()
    assert f"{tmp_path} lacks the weights of steps 5;" in line
    shutil.rmtree(tmp_path)
    with pytest.raises(DamagedFolderError, match=f"no validated .*{tmp_path}"):
        averager.mean()


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
