"""Averages of saved weights."""

import shutil

import keras
import ml_dtypes
import numpy as np
import pytest

from keras_attnvariants.training.averaging import CheckpointAverager
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.utils.files import DamagedFolderError
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
    mean, found = keep(tmp_path, [model] * count).mean()
    assert found == count and same(mean, model.arrays())


def test_average_of_two_is_their_mean(tmp_path):
    first, second = map(random_weights, (1, 2))
    (found, number), _ = keep(tmp_path, [first, second]).mean()
    mean = (first.arrays()[0] + second.arrays()[0]) / 2
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-7)
    assert number == 2  # integers are not averaged


def test_only_the_last_are_kept(tmp_path):
    models = [random_weights(seed) for seed in range(5)]
    averager = keep(tmp_path, models, last=2)
    assert len(list(tmp_path.iterdir())) == 2
    (found, _), count = averager.mean()
    assert count == 2
    mean = (models[3].arrays()[0].astype("float64") + models[4].arrays()[0]) / 2
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-7)


def test_damaged_weights_are_left_out_and_named(tmp_path, capsys):
    averager = keep(tmp_path, [random_weights(1), random_weights(2)])
    (tmp_path / "step-000000002/weights.npz").write_bytes(b"PK")
    mean, count = averager.mean()
    assert count == 1 and same(mean, random_weights(1).arrays())
    assert "step-000000002 is damaged" in capsys.readouterr().err


def test_steps_still_to_be_done_are_forgotten(tmp_path):
    averager = keep(tmp_path, [random_weights(seed) for seed in range(4)])
    (tmp_path / "tmp-step-000000005").mkdir()
    averager.remove_after(2)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["step-000000001", "step-000000002"]
    assert averager.mean()[1] == 2


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
