"""Writing versions: whole or not at all, with a description for their users."""

import keras
import pytest
import tensorflow as tf

import keras_attnvariants as kav
from keras_attnvariants.serving import export
from keras_attnvariants.serving.exporting import new_version
from keras_attnvariants.serving.folders import versions
from keras_attnvariants.utils.locks import FolderInUseError
from keras_attnvariants.utils.locks import lock_folder
from tests.serving.tools import LIMITS
from tests.serving.tools import sharp_model


class PythonModel(kav.Transformer):
    """A model with a step that no server can run."""

    def logits(self, x):
        logits = super().logits(x)
        shape = logits.shape
        logits = tf.numpy_function(lambda value: value, [logits], logits.dtype)
        return tf.ensure_shape(logits, shape)


@pytest.fixture(scope="module")
def model():
    return sharp_model("sh-x", num_layers=1)


def test_versions_count_up(exported_for_ids, tmp_path):
    assert exported_for_ids.name == "1"
    assert versions(exported_for_ids.parent) == [1]
    for name in ("1", "9", "8x", "notes"):
        (tmp_path / name).mkdir()
    assert new_version(tmp_path, None) == tmp_path / "10"
    assert versions(tmp_path) == [1, 9]


def test_a_version_never_changes(exported, models):
    path = exported["hc-sa"]
    with pytest.raises(FileExistsError, match="`version` must not exist"):
        export(models["hc-sa"], None, path.parent, version=1)


def test_a_failure_leaves_nothing(model, tmp_path, monkeypatch):
    def fail(module, path, signatures, options):
        (tf.io.gfile.GFile(f"{path}/saved_model.pb", "w")).write("half")
        raise OSError("No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with pytest.raises(OSError, match="No space"):
        export(model, None, tmp_path / "out", **LIMITS)
    assert not (tmp_path / "out").exists()


def test_a_second_export_at_once_is_refused_before_any_work(
    model, tmp_path, monkeypatch
):
    monkeypatch.setattr(tf.saved_model, "save", None)
    message = f"{tmp_path} is in use by process"
    with lock_folder(tmp_path), pytest.raises(FolderInUseError, match=message):
        export(model, None, tmp_path, **LIMITS)
    assert versions(tmp_path) == []


def test_a_model_that_needs_python_is_refused(model, tmp_path):
    python_model = PythonModel.from_config(model.get_config())
    with pytest.raises(ValueError, match="Received: PyFunc"):
        export(python_model, None, tmp_path, **LIMITS)
    assert versions(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "`beam_size` must be a positive integer"),
        ({"max_batch": 2.5}, "`max_batch` must be a positive integer"),
        ({"n_best": 0}, "`n_best` must be a positive integer"),
        ({"max_tokens": 91}, "`max_tokens` must be at most"),
        ({"version": 0}, "`version` must be a positive integer"),
        ({"length_penalty": float("nan")}, "`length_penalty`"),
    ],
)
def test_wrong_options_are_refused(options, message, model, tmp_path):
    with pytest.raises(ValueError, match=message):
        export(model, None, tmp_path, **options)


def test_a_tokenizer_of_another_model_is_refused(tokenizer, tmp_path):
    small = sharp_model("sh-x", num_layers=1, vocabulary_size=90)
    with pytest.raises(ValueError, match="`tokenizer` must not have more pieces"):
        export(small, tokenizer, tmp_path)


@pytest.mark.slow
def test_half_precision_models_are_exported(tokenizer, tmp_path, server, texts):
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = sharp_model("hc-sa", num_layers=1)
    path = export(model, tokenizer, tmp_path, **LIMITS)
    served = server.call(path, "serving_default", text=texts[:4])
    assert len(set(served["translations"])) > 1
