"""Damage, and operators that no translation needs, are found before loading."""

import shutil

import pytest
import tensorflow as tf

from keras_attnvariants.serving import verify
from keras_attnvariants.serving.operators import read_saved_model
from keras_attnvariants.serving.operators import write_saved_model
from keras_attnvariants.serving.verify import forbidden_operators
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.folders import MANIFEST
from tests.serving.tools import sign


@pytest.fixture
def copy(exported_for_ids, tmp_path):
    """A SavedModel that may be damaged."""
    return shutil.copytree(exported_for_ids, tmp_path / "copy")


class Reading(tf.Module):
    """Reads a file in its signature."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.string, "text")])
    def __call__(self, text):
        length = tf.strings.length(text)
        return {"x": tf.cond(length > 1, lambda: tf.io.read_file(text), lambda: text)}


class Writing(Reading):
    """Writes a file when Python loads it, though no signature does."""

    class Resource(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[])

        def _initialize(self):
            tf.io.write_file("never-written", "x")

    @tf.function(input_signature=[tf.TensorSpec([], tf.string, "text")])
    def __call__(self, text):
        return {"x": tf.identity(text)}

    def __init__(self):
        super().__init__()
        self.resource = self.Resource()
        self.resource.resource_handle  # noqa: B018 (makes it)


class Saving(Reading):
    """Writes a checkpoint in its signature, as only saving should."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.string, "text")])
    def __call__(self, text):
        tf.raw_ops.SaveV2(
            prefix=text, tensor_names=["x"], shape_and_slices=[""], tensors=[text]
        )
        return {"x": tf.identity(text)}


def test_what_we_export_passes(exported, exported_for_ids):
    verify(exported["hc-sa"])
    verify(exported_for_ids)


def test_a_changed_file_is_damage(copy):
    [data] = (copy / "variables").glob("variables.data-*")
    content = bytearray(data.read_bytes())
    content[100] ^= 1
    data.write_bytes(content)
    with pytest.raises(DamagedFolderError, match="sha256 differs"):
        verify(copy)


def test_an_added_file_is_refused_unless_its_place_is_the_owners(copy):
    (copy / "assets.extra" / "notes").write_bytes(b"x")
    verify(copy)
    (copy / "saved_model.pbtxt").write_text("")
    with pytest.raises(DamagedFolderError, match=r"Received: saved_model.pbtxt in"):
        verify(copy)


def test_a_folder_without_a_manifest_is_refused(copy):
    (copy / MANIFEST).unlink()
    with pytest.raises(DamagedFolderError, match="manifest.json is missing"):
        verify(copy)


@pytest.mark.parametrize(
    ("module", "operator"),
    [(Reading, "ReadFile"), (Writing, "WriteFile"), (Saving, "SaveV2")],
)
def test_programs_in_the_clothes_of_a_model_are_refused(module, operator, tmp_path):
    model = module()
    tf.saved_model.save(model, str(tmp_path), signatures=model.__call__)
    (tmp_path / "fingerprint.pb").unlink()
    sign(tmp_path)
    with pytest.raises(ValueError, match=rf"Received: {operator} in"):
        verify(tmp_path)
    verify(tmp_path, allowed={operator})


def test_files_are_read_where_weights_are_restored_and_nowhere_else(copy):
    saved = read_saved_model(copy)
    graph = saved.meta_graphs[0]
    assert not forbidden_operators(copy)
    # The same functions, no longer those of the saver.
    graph.saver_def.Clear()
    write_saved_model(copy, saved)
    assert {"RestoreV2", "SaveV2"} <= forbidden_operators(copy)
