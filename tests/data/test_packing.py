"""Weights files in 8 bits: what they keep, and files that do not fit."""

import io

import h5py
import numpy as np
import pytest

from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.data.model_folders import save_model
from keras_attnvariants.data.packing import pack
from keras_attnvariants.data.packing import quantized
from keras_attnvariants.data.packing import unpack
from tests.data.test_model_folders import sign
from tests.models import tiny

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")
rng = np.random.default_rng(3)


def weights_file(**arrays) -> bytes:
    """A weights file with these arrays."""
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        for name, array in arrays.items():
            file[f"layers/{name}/vars/0"] = array
        file["layers"].attrs["name"] = "kept"
    return content.getvalue()


def arrays_in(content: io.BytesIO) -> dict[str, np.ndarray]:
    with h5py.File(content) as file:
        assert file["layers"].attrs["name"] == "kept"
        return {name: file[f"layers/{name}/vars/0"][()] for name in file["layers"]}


@pytest.mark.parametrize("shape", [(40, 30), (24, 4, 20), (3, 40, 50)])
def test_each_number_is_within_half_a_step_of_its_slice(shape):
    matrix = rng.normal(size=shape).astype("float32")
    found = arrays_in(unpack(pack(weights_file(a=matrix))))["a"]
    assert found.dtype == np.float32
    step = np.abs(matrix).max() / 127
    assert 0 < np.abs(found - matrix).max() <= step / 2 + 1e-6


@pytest.mark.parametrize("axis", [0, 1])
def test_scales_are_those_of_the_axis_with_the_smaller_error(axis):
    sizes = np.geomspace(1e-3, 10, 40)
    matrix = rng.normal(size=(40, 40)) * (sizes[:, None] if axis == 0 else sizes)
    integers, scale = quantized(matrix.astype("float32"))
    assert integers.dtype == np.int8
    assert scale.shape == ((40, 1) if axis == 0 else (1, 40))


def test_vectors_narrow_matrices_and_integers_are_kept_as_they_are():
    arrays = {
        "vector": rng.normal(size=64).astype("float32"),
        "narrow": rng.normal(size=(64, 2)).astype("float32"),
        "numbers": np.arange(1024).reshape(32, 32),
        "empty": np.zeros((0, 4), "float32"),
    }
    found = arrays_in(unpack(pack(weights_file(**arrays))))
    for name, array in arrays.items():
        if name != "narrow":
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype
    np.testing.assert_allclose(found["narrow"], arrays["narrow"], atol=0.02)


def test_a_row_of_zeros_stays_one():
    matrix = rng.normal(size=(32, 32)).astype("float32")
    matrix[3] = 0
    matrix[:, 5] = 0
    found = arrays_in(unpack(pack(weights_file(a=matrix))))["a"]
    assert not found[3].any() and not found[:, 5].any() and np.isfinite(found).all()


def test_a_file_has_a_quarter_of_the_size():
    content = weights_file(a=rng.normal(size=(512, 512)).astype("float32"))
    assert len(pack(content)) < 0.27 * len(content)


def test_other_files_are_as_they_were():
    content = weights_file(a=np.ones((4, 4)), a_scale=np.ones((4, 1)))
    assert unpack(content).getvalue() == content


@pytest.fixture
def packed(tmp_path):
    """A packed model with a tokenizer-free folder, and the model."""
    model = tiny.built("another in every layer")
    return save_model(model, tmp_path / "model", packed=True), model


def test_a_packed_model_is_loaded_in_float32(packed, tmp_path):
    folder, model = packed
    found = load_model(folder).model
    assert found.dtype_policy.name == "float32"
    for mine, theirs in zip(model.weights, found.weights, strict=True):
        assert theirs.dtype == "float32"
        largest = float(np.abs(np.array(mine)).max())
        np.testing.assert_allclose(theirs, mine, atol=largest / 127)
    plain = save_model(model, tmp_path / "plain") / "model.weights.h5"
    assert (folder / "model.weights.h5").stat().st_size < plain.stat().st_size


def test_a_packed_half_precision_model_computes_in_float32(tmp_path):
    model = tiny.make(**tiny.places(), feed_forward=True, dtype="mixed_bfloat16")
    found = load_model(save_model(model, tmp_path / "model", packed=True)).model
    assert found.dtype_policy.name == found.layers[0].dtype_policy.name == "float32"
    assert model.dtype_policy.name == "mixed_bfloat16"


def change(folder, edit):
    """Edits the weights file of a folder, and makes the manifest agree."""
    with h5py.File(folder / "model.weights.h5", "r+") as file:
        scales = []
        file.visit(lambda name: scales.append(name) if "_scale" in name else None)
        edit(file, scales[0])
    sign(folder, "model.weights.h5")


def wider(file, name):
    """A scale that would make a matrix of thousands of it."""
    shape = file[name].shape
    del file[name]
    file[name] = np.ones((1000, *shape), "float32")


def endless(file, name):
    file[name][...] = np.inf


def later(file, name):
    file.attrs["packed"] = 2


def without(file, name):
    del file[name]
    del file[name.removesuffix("_scale")]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (wider, "broadcast"),
        (endless, "has values that are not finite"),
        (later, "packed in format 2"),
        (without, ""),
    ],
)
def test_a_packed_file_that_does_not_fit_is_refused(packed, edit, message):
    folder, _ = packed
    change(folder, edit)
    with pytest.raises(ValueError, match=f"do not fit.*{message}.*Received: "):
        load_model(folder)


def test_arrays_in_other_files_are_refused(packed, tmp_path):
    folder, _ = packed
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["secret"] = np.ones((8, 8), "float32")

    def virtual(file, name):
        layout = h5py.VirtualLayout((8, 8), "float32")
        layout[...] = h5py.VirtualSource(tmp_path / "other.h5", "secret", (8, 8))
        file.create_virtual_dataset("elsewhere", layout)

    change(folder, virtual)
    with pytest.raises(ValueError, match="arrays must be in the file itself"):
        load_model(folder)
