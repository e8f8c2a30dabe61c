"""Adapters: what is written, what they add, and which models they refuse."""

import json
import shutil

import numpy as np
import pytest
from keras import ops

import keras_attnvariants as kav
from keras_attnvariants.trained import adapters
from keras_attnvariants.trained.adapters import Adapter
from keras_attnvariants.utils.folders import new_folder


@pytest.fixture
def place(run_folder, tmp_path):
    """A folder with a model and, beside it, an adapter for it."""
    shutil.copytree(run_folder / "best", tmp_path / "model")
    model, _ = kav.load_model(tmp_path / "model")
    write(tmp_path / "adapter", model, tuned(tmp_path / "model"))
    return tmp_path


def tuned(folder):
    """The model with a matrix of rank 1 added to a kernel."""
    model = kav.load_model(folder).model
    kernel = kernel_of(model)
    rows, columns = (np.linspace(-1, 1, size) for size in kernel.shape)
    kernel.assign_add(np.outer(rows, columns))
    return model


def kernel_of(model):
    return next(w for w in model.weights if w.path.endswith("query/kernel"))


def write(folder, model, changed, name="../model"):
    digest = adapters.weights_sha256(model)
    settings = Adapter(model=name, sha256=digest, rank=1, preset="toy")
    adapters.save_adapter(folder, model, changed, settings)


def test_it_adds_what_was_learned(place):
    found, tokenizer = kav.load_model(place / "adapter")
    expected = kernel_of(tuned(place / "model"))
    np.testing.assert_allclose(kernel_of(found), expected, atol=1e-6)
    assert tokenizer is not None


def test_it_is_small(place):
    model, adapter = (
        sum(file.stat().st_size for file in (place / name).iterdir())
        for name in ("model", "adapter")
    )
    assert adapter < 0.2 * model


def test_both_can_move_together(place, tmp_path_factory):
    moved = tmp_path_factory.mktemp("elsewhere") / "place"
    place.rename(moved)
    kav.load_model(moved / "adapter")


def test_it_may_belong_to_a_model_of_the_package(tmp_path):
    name = "kav/lstm/tatoeba-en-de"
    model = kav.load_model(name).model
    write(tmp_path, model, model, name)
    found = kav.load_model(tmp_path).model
    assert adapters.weights_sha256(found) == adapters.weights_sha256(model)


def test_the_model_is_gone(place):
    shutil.rmtree(place / "model")
    with pytest.raises(FileNotFoundError, match=r"model of the adapter .*'\.\./model'"):
        kav.load_model(place / "adapter")


def test_another_model_is_refused(place):
    model, tokenizer = kav.load_model(place / "model")
    kernel_of(model).assign_add(ops.ones(kernel_of(model).shape))
    kav.save_model(model, place / "model", tokenizer)
    with pytest.raises(ValueError, match="belongs to one model") as error:
        kav.load_model(place / "adapter")
    assert "\n" not in str(error.value)


def test_an_adapter_for_itself_is_refused(place):
    model = kav.load_model(place / "model").model
    write(place / "adapter", model, model, "../adapter")
    with pytest.raises(ValueError, match="must list 'config.json'"):
        kav.load_model(place / "adapter")


@pytest.mark.parametrize("name", ["adapter.json", "adapter.npz"])
def test_a_file_that_is_cut_short(place, name):
    path = place / "adapter" / name
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match=f"{name} is not what was written"):
        kav.load_model(place / "adapter")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"nose/A": np.ones((2, 1)), "nose/B": np.ones((1, 2))}, "no product for"),
        ({"query/kernel/A": np.ones((2, 1))}, "no product for"),
        ({"{}/A": np.ones((2, 1)), "{}/B": np.ones((1, 2))}, r"it is \(2, 1\)"),
        ({"{}/A": np.float32(1), "{}/B": np.float32(1)}, "no product for"),
        ({"{}/A": np.full((16, 1), np.inf), "{}/B": np.ones((1, 16))}, "not finite"),
    ],
)
def test_products_that_do_not_fit(place, arrays, message):
    model = kav.load_model(place / "model").model
    kernel = kernel_of(model)
    path = kernel.path.partition("/")[2]
    if "not finite" in message:
        rows, columns = kernel.shape
        arrays = {"{}/A": np.full((rows, 1), np.inf), "{}/B": np.ones((1, columns))}
    crafted(place / "adapter", {k.format(path): v for k, v in arrays.items()})
    with pytest.raises(ValueError, match=message) as error:
        kav.load_model(place / "adapter")
    assert "\n" not in str(error.value)


def crafted(folder, arrays):
    """Puts other arrays into an adapter, with a manifest that fits."""
    settings = json.loads((folder / "adapter.json").read_text())
    with new_folder(folder) as writer:
        writer.write_json("adapter.json", settings)
        np.savez(writer.path / "adapter.npz", **arrays)


def test_settings_of_something_else(place):
    with new_folder(place / "adapter") as writer:
        writer.write_json("adapter.json", {"rank": 1})
        np.savez(writer.path / "adapter.npz")
    with pytest.raises(ValueError, match=r"adapter\.json is not a valid Adapter"):
        kav.load_model(place / "adapter")
