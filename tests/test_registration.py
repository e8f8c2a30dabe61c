"""Keras loads its files with our classes once their folder is imported."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest

import keras_attnvariants as kav

LISTED = (
    "sorted(n for n in keras.saving.get_custom_objects() if n.startswith('keras_att'))"
)


@pytest.mark.slow
def test_every_class_is_registered_if_keras_was_imported_before():
    code = (
        "import keras\n"
        "import keras_attnvariants as kav\n"
        f"before = {LISTED}\n"
        "for folder in kav._FOLDERS:\n"
        "    getattr(kav, folder)\n"
        f"assert before == {LISTED}\n"
        "print(len(before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) >= 35


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
        "import keras, keras_attnvariants",
        "import keras_attnvariants.training, keras, keras_attnvariants.models",
        "import keras_attnvariants, keras; keras_attnvariants.training",
    ],
)
def test_a_new_process_loads_it(saved, imports):
    path, expected = saved
    code = (
        f"{imports}\n"
        f"model = keras.saving.load_model({str(path)!r})\n"
        "output = model(keras.ops.ones((1, 5, 8)))\n"
        "print(type(model.loss).__name__)\n"
        "print(keras.ops.convert_to_numpy(output).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    name, output = done.stdout.strip().splitlines()
    assert name == "LabelSmoothedCrossEntropy"
    np.testing.assert_allclose(np.array(json.loads(output)), expected, atol=1e-6)
