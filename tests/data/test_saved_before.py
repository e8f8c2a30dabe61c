"""Models saved by an earlier version load, and compute what they computed then.

The archive contains a model folder of each model class, with inputs and logits, and a
`.keras` file with a layer of every variant. It was written when manifests of model
folders had no sizes, which the test adds, and attention layers had no regularizers.
"""

from pathlib import Path

import h5py
import keras
import numpy as np
import pytest

import keras_attnvariants as kav
import keras_attnvariants.attention  # noqa: F401, registers the layers
from tests.attention.conformance import forward
from tests.fixtures.archives import extract
from tests.serving.tools import sign

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "saved_by_0_1_0.tar.xz"
MODELS = (
    "transformer",
    "transformer_post",
    "seq2seq_lstm",
    "seq2seq_lstm_attention",
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    extract(ARCHIVE, folder)
    for name in MODELS:
        sign(folder / "v0_1" / name)
    return folder / "v0_1"


@pytest.mark.parametrize("name", MODELS)
def test_a_model_folder_loads(saved, name):
    model, tokenizer = kav.load_model(saved / name)
    assert tokenizer.vocabulary_size == model.vocabulary_size == 28
    recorded = np.load(saved / f"{name}.npz")
    ids = {name: recorded[name] for name in ("source_ids", "target_ids")}
    logits = forward(model, ids)
    difference = keras.ops.convert_to_numpy(logits) - recorded["logits"]
    assert np.abs(difference).max() < 1e-5


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_saved_where_they_were(name, saved, tmp_path):
    model, tokenizer = kav.load_model(saved / name)
    kav.save_model(model, tmp_path / "again", tokenizer)
    assert arrays(tmp_path / "again") == arrays(saved / name)


def arrays(folder: Path) -> list[str]:
    """The paths of all arrays in the weights of a model folder."""
    found = []
    with h5py.File(folder / "model.weights.h5") as file:
        file.visititems(
            lambda path, part: found.append(path) if hasattr(part, "dtype") else None
        )
    return found


@pytest.mark.skipif(
    keras.__version__ < "3.15", reason="Keras does not read what a newer one wrote"
)
def test_a_keras_file_loads(saved):
    model = keras.saving.load_model(saved / "layers.keras")
    recorded = np.load(saved / "layers.npz")
    output = forward(model, [recorded["query"], recorded["value"]])
    difference = keras.ops.convert_to_numpy(output) - recorded["output"]
    assert np.abs(difference).max() < 1e-4
