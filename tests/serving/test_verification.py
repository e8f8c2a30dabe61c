"""Damage, foreign operators and inexact processors are found before loading."""

import json
import platform
import shutil

import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.serving import Client
from keras_attnvariants.serving import export
from keras_attnvariants.serving import verify
from keras_attnvariants.serving.client import InvalidRequestError
from keras_attnvariants.serving.client import ModelNotFoundError
from keras_attnvariants.serving.folders import GRAPH
from keras_attnvariants.serving.folders import REMEDY
from keras_attnvariants.serving.graphs import read_saved_model
from keras_attnvariants.serving.verification import ProcessorError
from keras_attnvariants.serving.verification import forbidden_operators
from keras_attnvariants.serving.version_files import WARM_UP
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.folders import read_manifest
from tests.faults.serving import MODEL
from tests.faults.serving import ServerProcess
from tests.quantization import quantizing
from tests.serving.tools import LIMITS
from tests.serving.tools import OtherProcess
from tests.serving.tools import ServingError
from tests.serving.tools import as_batch
from tests.serving.tools import sharp_model
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
    """Writes a checkpoint in its signature, which only saving should do."""

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


def test_a_graph_that_cannot_be_read_is_damage_and_said_once(copy):
    (copy / GRAPH).write_bytes(b"no graph")
    entries = read_manifest(copy) | {GRAPH: file_entry(copy / GRAPH, copy)}
    (copy / MANIFEST).write_text(json.dumps(entries))
    with pytest.raises(DamagedFolderError) as caught:
        verify(copy)
    assert str(caught.value).startswith("saved_model.pb is not a SavedModel: restore")
    assert str(caught.value).count(REMEDY) == 1


@pytest.mark.parametrize(
    ("module", "operator"),
    [(Reading, "ReadFile"), (Writing, "WriteFile"), (Saving, "SaveV2")],
)
def test_programs_that_pass_as_models_are_refused(module, operator, tmp_path):
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
    assert not forbidden_operators(saved)
    # The same functions, no longer those of the saver.
    graph.saver_def.Clear()
    assert {"RestoreV2", "SaveV2"} <= forbidden_operators(saved)


# Only TensorFlow for x86 multiplies integers.
on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="needs x86-64")

# A process multiplies as on a processor without AVX512; TensorFlow would call oneDNN
# for products of bfloat16, which it does not support there.
WITHOUT_VNNI = {"ONEDNN_MAX_CPU_ISA": "AVX2", "TF_ENABLE_ONEDNN_OPTS": "0"}

ROWS = [[5, 6, 7], [8]]


@pytest.fixture(scope="module")
def integers_and_floats(tmp_path_factory):
    """Exports of one model: with integers to multiply, and without."""
    model = sharp_model("hc-sa", dtype="mixed_bfloat16")
    with quantizing():
        model.quantize("int8")
    folder = tmp_path_factory.mktemp("integers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "is_onednn_exact", lambda: True)
        integers = export(model, None, folder / "integers", precision="int8", **LIMITS)
    return integers, export(model, None, folder / "floats", **LIMITS)


def translate(process, path):
    lengths = np.array([len(row) for row in ROWS], "int32")
    inputs = {"source_ids": np.asarray(as_batch(ROWS)), "lengths": lengths}
    return [
        process.call(path, signature, **inputs)
        for signature in ("serving_default", "translate_ids")
    ]


@on_x86
def test_every_answer_is_an_error_where_it_would_be_wrong(integers_and_floats):
    integers, floats = integers_and_floats
    process = OtherProcess("tensorflow_text", **WITHOUT_VNNI)
    try:
        for _ in range(2):
            with pytest.raises(ServingError, match="does not do exactly.*AVX512-VNNI"):
                translate(process, integers)
        one, other = translate(process, floats)
    finally:
        process.close()
    np.testing.assert_array_equal(one["ids"], other["ids"])
    assert (one["status"] == 0).all()


@on_x86
def test_a_server_takes_no_version_that_would_be_wrong_and_answers_with_errors(
    integers_and_floats, tmp_path
):
    integers, _ = integers_and_floats
    inputs = {"source_ids": as_batch(ROWS), "lengths": [len(row) for row in ROWS]}
    shutil.copytree(integers, tmp_path / "1")
    shutil.copytree(integers, tmp_path / "2")
    # Without warm-up requests, the version would be taken without running it.
    (tmp_path / "2" / WARM_UP).unlink()
    with ServerProcess(tmp_path, **WITHOUT_VNNI) as server:
        with Client(server.address, MODEL, version=1) as client:
            with pytest.raises(ModelNotFoundError):
                client.predict(inputs)
        with Client(server.address, MODEL) as client:
            for signature in ("serving_default", "translate_ids"):
                with pytest.raises(InvalidRequestError, match="AVX512-VNNI"):
                    client.predict(inputs, signature)


@on_x86
@pytest.mark.skipif(not backend.is_onednn_exact(), reason="not on this processor")
def test_where_integers_are_exact_there_are_translations(integers_and_floats):
    integers, _ = integers_and_floats
    verify(integers)
    lengths = [len(row) for row in ROWS]
    served = tf.saved_model.load(str(integers)).signatures["serving_default"]
    found = served(source_ids=as_batch(ROWS), lengths=lengths)
    assert (found["status"].numpy() == 0).all()


@on_x86
def test_it_is_said_before_a_model_is_loaded(integers_and_floats, monkeypatch):
    integers, floats = integers_and_floats
    monkeypatch.setattr(backend, "is_onednn_exact", lambda: False)
    with pytest.raises(ProcessorError, match=f"AVX512-VNNI.* Received: {integers}"):
        verify(integers)
    verify(floats)
