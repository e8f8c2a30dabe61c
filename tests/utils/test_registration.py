"""Keras loads what holds our classes as soon as the package is imported."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants.utils.registration import PACKAGE
from keras_attnvariants.utils.registration import REGISTERED
from keras_attnvariants.utils.registration import stand_in


def home(cls):
    """The folder that a class is defined in."""
    return cls.__module__.split(".")[1]


def test_every_registered_class_is_announced_by_its_folder():
    for folder in kav._FOLDERS:
        getattr(kav, folder)
    ours = {
        name.partition(">")[2]: cls
        for name, cls in keras.saving.get_custom_objects().items()
        if name.startswith(f"{PACKAGE}>") and cls.__module__.startswith(f"{PACKAGE}.")
    }
    announced = {name: room for room, names in REGISTERED.items() for name in names}
    assert {name: home(cls) for name, cls in ours.items()} == announced


def test_a_stand_in_is_the_class_of_its_room():
    layer = kav.HardCodedAttention(num_heads=2, offsets=(-1, 1))
    cls = stand_in("attention", "HardCodedAttention")
    assert type(cls.from_config(layer.get_config())) is kav.HardCodedAttention
    assert type(cls(num_heads=2, offsets=(-1, 1))) is kav.HardCodedAttention


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A compiled model with a layer and a loss of ours, saved by Keras."""
    x = keras.Input((5, 8))
    attended = kav.HardCodedAttention(num_heads=2, offsets=(-1, 1))(x, x)
    model = keras.Model(x, keras.layers.Dense(3)(attended))
    model.compile(loss=kav.training.LabelSmoothedCrossEntropy(0.1))
    path = tmp_path_factory.mktemp("saved") / "model.keras"
    model.save(path)
    return path, np.asarray(model(np.ones((1, 5, 8), "float32")))


@pytest.mark.slow
@pytest.mark.parametrize(
    "imports",
    [
        "import keras_attnvariants, keras",
        "import keras, keras_attnvariants",
        "import keras_attnvariants.attention, keras",
    ],
)
def test_a_new_process_loads_it_whatever_is_imported_first(saved, imports):
    path, expected = saved
    code = (
        f"{imports}\n"
        f"model = keras.saving.load_model({str(path)!r})\n"
        "output = model(keras.ops.ones((1, 5, 8)))\n"
        "print(type(model.loss).__name__, keras.__spec__.loader.__class__.__name__)\n"
        "print(keras.ops.convert_to_numpy(output).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    names, output = done.stdout.strip().splitlines()
    assert names == "LabelSmoothedCrossEntropy SourceFileLoader"
    np.testing.assert_allclose(np.array(json.loads(output)), expected, atol=1e-6)
