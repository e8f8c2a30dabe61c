"""Model folders: what is saved comes back, what was changed is refused."""

import hashlib
import json
import shutil

import keras
import numpy as np
import pytest

from keras_attnvariants.models import Transformer
from keras_attnvariants.models import from_preset
from keras_attnvariants.models import save_preset
from tests.models import tiny

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


class Pieces:
    """What `save_preset` asks of a tokenizer."""

    model_bytes = b"pieces"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved model; tests change copies of it."""
    directory = tmp_path_factory.mktemp("saved") / "model"
    save_preset(tiny.built("another in every layer"), directory, Pieces())
    return directory


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def sign(directory, name):
    """Makes the manifest agree with a file that was changed."""
    manifest = json.loads((directory / "manifest.json").read_text())
    manifest[name] = hashlib.sha256((directory / name).read_bytes()).hexdigest()
    (directory / "manifest.json").write_text(json.dumps(manifest))


def test_a_saved_model_comes_back(saved):
    loaded = from_preset(saved)
    assert type(loaded) is Transformer
    tiny.near(
        tiny.forward(loaded), tiny.forward(tiny.built("another in every layer")), 0
    )
    files = {path.name for path in saved.iterdir()}
    assert files == {
        "config.json",
        "model.weights.h5",
        "tokenizer.model",
        "manifest.json",
    }
    assert (saved / "tokenizer.model").read_bytes() == b"pieces"


def test_the_methods_of_a_model_do_the_same(tmp_path):
    model = tiny.make(**tiny.places(), feed_forward=False, dtype="mixed_bfloat16")
    assert model.save_preset(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    loaded = Transformer.from_preset(str(tmp_path / "a" / "b"))
    assert loaded.dtype_policy.name == "mixed_bfloat16"
    tiny.near(tiny.forward(loaded), tiny.forward(model), 0)
    assert not (tmp_path / "a" / "b" / "tokenizer.model").exists()


def test_a_compiled_model_is_saved_without_its_optimizer(tmp_path):
    model = tiny.make(**tiny.places(), feed_forward=False)
    save_preset(model, tmp_path / "before")
    optimizer = keras.optimizers.Adam()
    model.compile(
        optimizer, keras.losses.MeanSquaredError(name="own"), jit_compile=False
    )
    optimizer.build(model.trainable_variables)
    save_preset(model, tmp_path / "after")
    assert model.optimizer is optimizer
    before, after = (
        (tmp_path / name / "model.weights.h5").stat().st_size
        for name in ("before", "after")
    )
    assert before == after
    assert "compile" not in (tmp_path / "after" / "config.json").read_text()
    assert not from_preset(tmp_path / "after").compiled


def test_a_folder_of_the_same_name_is_replaced_as_a_whole(copy):
    model = tiny.make(**tiny.places(), feed_forward=False)
    save_preset(model, copy)
    assert not (copy / "tokenizer.model").exists()
    tiny.near(tiny.forward(from_preset(copy)), tiny.forward(model), 0)
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]


def test_a_failed_save_leaves_what_was_there(copy):
    before = {path.name: path.read_bytes() for path in copy.iterdir()}

    class Broken:
        @property
        def model_bytes(self):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        save_preset(tiny.built("another in every layer"), copy, Broken())
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5", "tokenizer.model"])
def test_a_changed_file_is_refused(copy, name):
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name}.*sha256.*Received: "):
        from_preset(copy)


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5", "tokenizer.model"])
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"lacks.*Received: '{name}'"):
        from_preset(copy)


def test_a_folder_that_is_no_saved_model_is_refused(tmp_path):
    for directory in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match="manifest.json.*Received: "):
            from_preset(directory)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "{}", '{"config.json": "0"}'])
def test_a_manifest_that_vouches_for_nothing_is_refused(copy, text):
    (copy / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match="manifest.json must give.*Received: "):
        from_preset(copy)


def test_a_manifest_that_names_files_elsewhere_is_refused(copy):
    outside = copy.parent / "outside"
    outside.write_bytes(b"")
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["../outside"] = hashlib.sha256(b"").hexdigest()
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FileNotFoundError, match="Received: '../outside'"):
        from_preset(copy)


@pytest.mark.parametrize(
    "change", [{"hidden_dim": 32}, {"num_layers": 1}, {"num_layers": 3}]
)
def test_weights_of_another_model_are_refused(tmp_path, change):
    options = {**tiny.places(), "feed_forward": True}
    save_preset(tiny.make(**options), tmp_path / "one")
    save_preset(tiny.make(**options, **change), tmp_path / "other")
    weights = (tmp_path / "other" / "model.weights.h5").read_bytes()
    (tmp_path / "one" / "model.weights.h5").write_bytes(weights)
    sign(tmp_path / "one", "model.weights.h5")
    with pytest.raises(ValueError, match="do not fit the configuration.*Received: "):
        from_preset(tmp_path / "one")


def test_truncated_weights_are_refused(copy):
    weights = (copy / "model.weights.h5").read_bytes()
    (copy / "model.weights.h5").write_bytes(weights[: len(weights) // 2])
    sign(copy, "model.weights.h5")
    with pytest.raises(ValueError, match="do not fit the configuration.*Received: "):
        from_preset(copy)


def test_the_weights_that_come_back_are_not_those_of_a_new_model(saved):
    again = Transformer.from_config(
        json.loads((saved / "config.json").read_text())["config"]
    )
    difference = tiny.forward(again) - tiny.forward(from_preset(saved))
    assert np.abs(difference).max() > 0.1
