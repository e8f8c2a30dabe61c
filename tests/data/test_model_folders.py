"""Model folders: they load as they were saved, and changed ones are refused."""

import contextlib
import errno
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
from keras.src.saving.serialization_lib import SafeModeScope

import keras_attnvariants as kav
from keras_attnvariants import Tokenizer
from keras_attnvariants import presets
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.data import model_folders
from keras_attnvariants.data.model_folders import check_config
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.data.model_folders import save_model
from keras_attnvariants.data.model_folders import without_unset_options
from keras_attnvariants.models import Seq2SeqLSTM
from keras_attnvariants.models import Transformer
from tests.models import tiny
from tests.quantization import quantizing
from tests.training.faults import full_disk_after

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["a small house", "the small mouse"], vocabulary_size=14)


@pytest.fixture(scope="module")
def saved(tokenizer, tmp_path_factory):
    """A saved model; tests change copies of it."""
    directory = tmp_path_factory.mktemp("saved") / "model"
    save_model(tiny.built("another in every layer"), directory, tokenizer)
    return directory


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def test_a_process_that_imports_the_package_first_loads_it(saved):
    code = (
        "import keras_attnvariants as kav\n"
        f"print(type(kav.load_model({str(saved)!r}).model).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "Transformer\n", done.stderr


def sign(directory, name):
    """Makes the manifest agree with a file that was changed."""
    manifest = json.loads((directory / "manifest.json").read_text())
    content = (directory / name).read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    manifest[name] = {"size": len(content), "sha256": sha256}
    (directory / "manifest.json").write_text(json.dumps(manifest))


def test_a_saved_model_comes_back_with_its_tokenizer(saved, tokenizer):
    loaded, pieces = load_model(saved)
    assert type(loaded) is Transformer
    assert pieces.model_bytes == tokenizer.model_bytes
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
    assert (saved / "tokenizer.model").read_bytes() == tokenizer.model_bytes


def test_folders_are_paths_or_strings_and_a_tokenizer_may_be_missing(tmp_path):
    model = tiny.make(**tiny.places(), feed_forward=False, dtype="mixed_bfloat16")
    assert save_model(model, str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"
    loaded, tokenizer = load_model(str(tmp_path / "a" / "b"))
    assert tokenizer is None
    assert loaded.dtype_policy.name == "mixed_bfloat16"
    tiny.near(tiny.forward(loaded), tiny.forward(model), 0)
    assert not (tmp_path / "a" / "b" / "tokenizer.model").exists()


def test_a_compiled_model_is_saved_without_its_optimizer(tmp_path):
    model = tiny.make(**tiny.places(), feed_forward=False)
    save_model(model, tmp_path / "before")
    optimizer = keras.optimizers.Adam()
    model.compile(
        optimizer, keras.losses.MeanSquaredError(name="own"), jit_compile=False
    )
    optimizer.build(model.trainable_variables)
    save_model(model, tmp_path / "after")
    assert model.optimizer is optimizer
    before, after = (
        (tmp_path / name / "model.weights.h5").stat().st_size
        for name in ("before", "after")
    )
    assert before == after
    assert "compile" not in (tmp_path / "after" / "config.json").read_text()
    assert not load_model(tmp_path / "after").model.compiled


def test_a_full_temporary_folder_is_named(saved, monkeypatch):
    def write(path, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(OSError, match="No space.*'.*weights.h5'"):
        load_model(saved)


def test_a_folder_of_the_same_name_is_replaced_as_a_whole(copy):
    model = tiny.make(**tiny.places(), feed_forward=False)
    save_model(model, copy)
    assert not (copy / "tokenizer.model").exists()
    tiny.near(tiny.forward(load_model(copy).model), tiny.forward(model), 0)
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]


def test_a_failed_save_leaves_what_was_there(copy):
    before = {path.name: path.read_bytes() for path in copy.iterdir()}

    class Broken:
        @property
        def model_bytes(self):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        save_model(tiny.built("another in every layer"), copy, Broken())
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]


def test_weights_are_on_the_disk_before_the_folder_appears(tmp_path, monkeypatch):
    events = []
    fsync, rename = os.fsync, Path.rename

    def noted_fsync(descriptor):
        events.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def noted_rename(path, target):
        events.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    save_model(tiny.make(**tiny.places(), feed_forward=False), tmp_path / "model")
    assert "model.weights.h5" in events[: events.index("rename")]


def test_a_full_disk_while_weights_are_written_is_an_error(tmp_path, monkeypatch):
    """It is not HDF5 that finds the disk full, which would end the process."""
    model = tiny.built("base, post")
    save_model(model, tmp_path / "model")
    before = (tmp_path / "model/model.weights.h5").read_bytes()
    size = sum(path.stat().st_size for path in (tmp_path / "model").iterdir())
    full_disk_after(monkeypatch, size - 5000)
    with pytest.raises(OSError, match="No space left"):
        save_model(model, tmp_path / "model")
    assert (tmp_path / "model/model.weights.h5").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5", "tokenizer.model"])
def test_a_changed_file_is_refused(copy, name):
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name}.*sha256.*Received: "):
        load_model(copy)


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5", "tokenizer.model"])
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    with pytest.raises(ValueError, match=f"{name} is missing.*Received: "):
        load_model(copy)


def test_a_folder_without_a_saved_model_is_refused(tmp_path):
    for directory in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match="manifest.json.*Received: "):
            load_model(directory)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "{}", '{"config.json": "0"}'])
def test_a_manifest_that_vouches_for_nothing_is_refused(copy, text):
    (copy / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match="manifest.json .*Received: "):
        load_model(copy)


def test_a_tokenizer_that_was_not_saved_with_the_model_is_refused(copy):
    manifest = json.loads((copy / "manifest.json").read_text())
    del manifest["tokenizer.model"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="tokenizer.model is not listed.*Received: "):
        load_model(copy)


@contextlib.contextmanager
def within_memory(megabytes):
    """Context in which only this much more memory is available."""
    used = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = used * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def rewrite_config(directory, change):
    """Changes the arguments of a saved model, and its checksum."""
    config = json.loads((directory / "config.json").read_text())
    config["config"].update(change)
    (directory / "config.json").write_text(json.dumps(config))
    sign(directory, "config.json")


@pytest.mark.parametrize(
    "change",
    [
        {"vocabulary_size": 10**9},
        {"intermediate_dim": 10**9},
        {"hidden_dim": 4 * 10**8},
        {"num_layers": 10**9},
        {"max_length": 10**9},
        {"max_length": 1 << 20, "hidden_dim": 32},
        {"search_settings": {"beam_size": 10**9}},
        {"search_settings": {"beam_size": 1000, "extra_length": 1 << 20}},
        {"vocabulary_size": 10**6, "hidden_dim": 10**5},
    ],
    ids=str,
)
def test_a_model_larger_than_its_weights_is_not_built(copy, change):
    rewrite_config(copy, change)
    with (
        within_memory(megabytes=400),
        pytest.raises(ValueError, match="config.json .*(built|fit) .*Received: "),
    ):
        load_model(copy)


def test_a_model_half_larger_than_its_weights_is_not_allocated(copy):
    size = json.loads((copy / "config.json").read_text())["config"]["vocabulary_size"]
    rewrite_config(copy, {"vocabulary_size": size + size // 2})
    with pytest.raises(ValueError, match="parameters, and .* numbers in the file"):
        load_model(copy)


@pytest.mark.parametrize("offset", [10**9, -(10**9), 10**6])
def test_a_window_larger_than_any_is_not_built(copy, offset):
    text = (copy / "config.json").read_text()
    config = json.loads(text)
    places = config["config"]["encoder_attention"]
    [layer] = [place for place in places if "offsets" in place["config"]]
    layer["config"]["offsets"] = [0, offset]
    rewrite_config(copy, {"encoder_attention": places})
    with pytest.raises(ValueError, match="`offsets` is 1,0[0,]*[,:].* over"):
        load_model(copy)


def test_a_layer_may_be_wider_than_the_model():
    preset = presets.get("loem2022/concatenated-ngram/wmt16-en-de")
    config = {**preset.config, "search_settings": {"beam_size": 4}}
    check_config({"config": config}, arrays=1000, numbers=preset.parameters)


def test_a_small_model_may_accept_long_texts(tmp_path):
    model = Seq2SeqLSTM(20, 8, 64, max_length=100_000)
    found = load_model(save_model(model, tmp_path / "model")).model
    assert found.max_length == 100_000


def test_a_vocabulary_in_4_bits_may_be_most_of_the_model(tmp_path):
    attention = DotProductAttention(num_heads=1)
    places = (attention, attention, attention)
    search = {"beam_size": 1000}
    model = Transformer(3000, 1, 16, 16, *places, search_settings=search)
    with quantizing():
        model.quantize("int4")
        found = load_model(save_model(model, tmp_path / "model")).model
    assert all(map(np.array_equal, found.get_weights(), model.get_weights()))


def test_seeds_may_be_large(tmp_path):
    initializer = keras.initializers.GlorotUniform(seed=2**31 - 1)
    attention = DotProductAttention(4, kernel_initializer=initializer)
    model = tiny.make(**tiny.places(encoder_attention=attention))
    assert load_model(save_model(model, tmp_path / "model")).model


def test_a_load_builds_the_model_once(saved, monkeypatch):
    builds = []
    build = Transformer.build

    def counted(self, input_shape=None):
        builds.append(self)
        return build(self, input_shape)

    monkeypatch.setattr(Transformer, "build", counted)
    load_model(saved)
    assert len(builds) == 1


def test_a_refused_model_is_not_allocated_later(copy):
    rewrite_config(copy, {"vocabulary_size": 10**9})
    with pytest.raises(ValueError, match="vocabulary_size"):
        load_model(copy)
    with within_memory(megabytes=400), keras.StatelessScope():
        pass


def nested(depth):
    """A configuration nested this deeply, in JSON; encoders may not support it."""
    positions = '{"inner": ' * depth + "1" + "}" * depth
    return f'{{"config": {{"positions": {positions}}}}}'.encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 200_000, "nested too deeply"),
        (nested(950), "too deeply"),
        (b'{"config": 1}', "describes no model"),
        (b"[]", "describes no model"),
        (b'{"config"', "cut short or not JSON"),
    ],
    ids=["brackets", "objects", "number", "list", "cut"],
)
def test_values_that_are_not_configurations(copy, content, message):
    (copy / "config.json").write_bytes(content)
    sign(copy, "config.json")
    with pytest.raises(ValueError, match=f"config.json .*{message}.*Received: "):
        load_model(copy)


DENSE = {"class_name": "Dense", "module": "keras.layers", "config": {"units": 2}}
LAYERS = {
    "a file": {"class_name": "TFSMLayer", "config": {"filepath": "elsewhere"}},
    "a package": {"class_name": "TorchModuleWrapper", "config": {"module": None}},
    "code": {"class_name": "Lambda", "config": {"function": {"class_name": "x"}}},
    "another kind of layer": DENSE,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"search_settings": {"beam_size": 1001}}, "`beam_size` must be at most 1000"),
        ({"search_settings": {"beam": 4}}, "unexpected keyword argument 'beam'"),
        ({"search_settings": 7}, "argument after .* must be a mapping"),
        ({"vocabulary_size": None}, "`vocabulary_size` must be a positive integer"),
        ({"vocab": 4}, "vocab"),
        ({"quantization": "int7"}, "Invalid quantization mode"),
        ({"encoder_attention": {"class_name": "mine>Own", "config": {}}}, "--import"),
        *[
            ({"cross_attention": {"module": "keras.layers", **layer}}, "")
            for layer in LAYERS.values()
        ],
    ],
    ids=str,
)
def test_configurations_that_do_not_build_a_model(copy, change, message):
    rewrite_config(copy, change)
    with pytest.raises(ValueError, match=f"config.json describes.*{message}") as error:
        load_model(copy)
    assert str(error.value).endswith(f"Received: {copy}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["StringLookup", "IntegerLookup", "TextVectorization"])
def test_a_layer_that_reads_a_file_is_not_built(copy, tmp_path, kind):
    (tmp_path / "words").write_text("a\nb\n")
    options = {"vocabulary": str(tmp_path / "words")}
    layer = {"class_name": kind, "config": options, "registered_name": None}
    rewrite_config(copy, {"positions": {"module": "keras.layers", **layer}})
    # Whatever was allowed in this process.
    with (
        SafeModeScope(safe_mode=False),
        pytest.raises(ValueError, match="`vocabulary` names the file '.*/words'"),
    ):
        load_model(copy)


@pytest.mark.parametrize("config", [{"config": {}}, *LAYERS.values()], ids=str)
def test_classes_that_are_not_models(copy, config):
    (copy / "config.json").write_text(json.dumps(config))
    sign(copy, "config.json")
    with pytest.raises(ValueError, match="config.json describes no model") as error:
        load_model(copy)
    assert str(error.value).endswith(f"Received: {copy}")


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        ("99.1", "; version 99.1 wrote it: pip install -U keras_attnvariants)"),
        (kav.__version__, ")"),
        ("new", ")"),
        (None, ")"),
    ],
)
def test_a_model_of_a_later_version_is_told(copy, version, advice):
    config = json.loads((copy / "config.json").read_text())
    assert config["version"] == kav.__version__
    config["version"] = version
    config["config"]["attention_of_tomorrow"] = 1
    (copy / "config.json").write_text(json.dumps(config))
    sign(copy, "config.json")
    with pytest.raises(ValueError, match="config.json describes no mod") as error:
        load_model(copy)
    assert f"'attention_of_tomorrow': 1}}{advice}. Received: " in str(error.value)


def test_a_load_draws_no_random_weights(saved, monkeypatch):
    def drawn(self, shape, dtype=None):
        raise AssertionError(f"drew {shape}")

    monkeypatch.setattr(keras.initializers.VarianceScaling, "__call__", drawn)
    assert load_model(saved).model.built


def test_a_class_that_is_not_known_has_to_be_imported(copy):
    text = (copy / "config.json").read_text()
    (copy / "config.json").write_text(text.replace("DotProductAttention", "Own"))
    sign(copy, "config.json")
    with pytest.raises(ValueError, match="config.json.* 'Own'.*--import package.mod"):
        load_model(copy)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(tmp_path, value):
    model = tiny.make(**tiny.places(), feed_forward=True, dtype="mixed_bfloat16")
    weight = model.weights[-1]
    values = np.array(weight)
    values.flat[-1] = value
    weight.assign(values)
    save_model(model, tmp_path / "model")
    message = f"{weight.path.partition('/')[2]} has values that are not finite"
    with pytest.raises(ValueError, match=f"do not fit.*{message}"):
        load_model(tmp_path / "model")


def test_weights_that_promise_more_than_the_file_holds_are_refused(copy):
    with h5py.File(copy / "model.weights.h5", "a") as file:
        file.create_dataset("bomb", (10**12,), "float32", compression="gzip")
    sign(copy, "model.weights.h5")
    with pytest.raises(ValueError, match="bytes in a file that is shorter"):
        load_model(copy)


def test_weights_are_those_whose_checksum_was_compared(copy, saved, monkeypatch):
    expected = load_model(saved).model.get_weights()

    def replaced(folder):
        """Puts other weights in the place of those that were compared."""
        with h5py.File(folder / "model.weights.h5", "a") as file:
            file.visititems(
                lambda _, item: (
                    item.write_direct(np.zeros(item.shape, item.dtype))
                    if isinstance(item, h5py.Dataset)
                    else None
                )
            )

    monkeypatch.setattr(model_folders, "load_tokenizer", replaced)
    found = load_model(copy).model.get_weights()
    assert all(map(np.array_equal, found, expected))


def test_a_manifest_that_names_files_elsewhere_is_refused(copy):
    outside = copy.parent / "outside"
    outside.write_bytes(b"")
    manifest = json.loads((copy / "manifest.json").read_text())
    digest = hashlib.sha256(b"").hexdigest()
    manifest["../outside"] = {"size": 0, "sha256": digest}
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="outside the folder.*'../outside'"):
        load_model(copy)


@pytest.mark.parametrize(
    "change", [{"hidden_dim": 32}, {"num_layers": 1}, {"num_layers": 3}]
)
def test_weights_of_another_model_are_refused(tmp_path, change):
    options = {**tiny.places(), "feed_forward": True}
    save_model(tiny.make(**options), tmp_path / "one")
    save_model(tiny.make(**options, **change), tmp_path / "other")
    weights = (tmp_path / "other" / "model.weights.h5").read_bytes()
    (tmp_path / "one" / "model.weights.h5").write_bytes(weights)
    sign(tmp_path / "one", "model.weights.h5")
    with pytest.raises(ValueError, match="weights beside it do not fit.*Received: "):
        load_model(tmp_path / "one")


def test_truncated_weights_are_refused(copy):
    weights = (copy / "model.weights.h5").read_bytes()
    (copy / "model.weights.h5").write_bytes(weights[: len(weights) // 2])
    sign(copy, "model.weights.h5")
    with pytest.raises(ValueError, match="weights beside it do not fit.*Received: "):
        load_model(copy)


def test_the_weights_that_come_back_are_not_those_of_a_new_model(saved):
    again = Transformer.from_config(
        json.loads((saved / "config.json").read_text())["config"]
    )
    difference = tiny.forward(again) - tiny.forward(load_model(saved).model)
    assert np.abs(difference).max() > 0.1


def test_initializers_of_other_releases_of_keras_may_have_options_that_are_unset():
    written = keras.initializers.serialize(keras.initializers.HeNormal())
    later = {**written, "config": {**written["config"], "not_there_yet": None}}
    found = without_unset_options(
        {"config": {"kernel_initializers": [later], "seed": None}}
    )
    assert found["config"]["seed"] is None
    [initializer] = found["config"]["kernel_initializers"]
    assert keras.initializers.deserialize(initializer).get_config() == written["config"]
