"""Files in the folder of a version: how requests are merged, and warm-up requests."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_attnvariants.serving.folders import INFO
from keras_attnvariants.serving.graphs import read_saved_model
from keras_attnvariants.serving.inputs import LENGTHS
from keras_attnvariants.serving.inputs import PREFIX
from keras_attnvariants.serving.inputs import SOURCE_IDS
from keras_attnvariants.serving.inputs import TEXT
from keras_attnvariants.serving.inputs import GraphSignature
from keras_attnvariants.serving.inputs import Input
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.options import sizes_up_to
from keras_attnvariants.serving.translator import STATUS_DOCS
from keras_attnvariants.serving.version_files import BATCHING
from keras_attnvariants.serving.version_files import OUTPUTS
from keras_attnvariants.serving.version_files import WARM_UP
from keras_attnvariants.serving.version_files import examples
from keras_attnvariants.serving.version_files import signature_info
from keras_attnvariants.serving.version_files import text_of
from keras_attnvariants.serving.version_files import write_batching
from tests.serving.configs import BatchingParameters
from tests.serving.configs import read
from tests.serving.tools import LIMITS


@pytest.fixture(scope="module")
def wide():
    return Options(
        beam_size=4,
        length_penalty=1.0,
        n_best=1,
        **{**LIMITS, "max_characters": 4096, "max_tokens": 200},
    )


def test_a_text_has_as_many_tokens_as_it_may(tokenizer, wide):
    narrower = 0
    for width in wide.buckets:
        size = len(tokenizer.encode([text_of(tokenizer, width)])[0])
        assert narrower < size <= width
        narrower = width


def test_every_bucket_has_an_example(tokenizer, wide):
    inputs = [
        SOURCE_IDS,
        LENGTHS,
        TEXT,
        PREFIX,
        Input("length_penalty", tf.float32, "", default=0.6),
        Input("seed", tf.int32, "", default=0),
    ]
    found = list(examples(inputs, wide, tokenizer, 9))
    assert [row["lengths"].tolist() for row in found] == [[n] for n in wide.buckets]
    assert [row["source_ids"].shape[1] for row in found] == list(wide.buckets)
    for row in found:
        assert row["prefix"].tolist() == [b""]
        np.testing.assert_array_equal(row["length_penalty"], [np.nan])
        assert row["seed"].tolist() == [-1]


def test_an_export_answers_its_own_requests(exported):
    path = exported["hc-sa"]
    records = tf.data.TFRecordDataset(str(path / WARM_UP)).as_numpy_iterator()
    requests = [PredictionLog.FromString(r).predict_log.request for r in records]
    info = json.loads((path / INFO).read_text())
    asked = [request.model_spec.signature_name for request in requests]
    buckets = Options(**info["options"]).buckets
    assert asked == [name for name in info["signatures"] for _ in buckets]
    signatures = tf.saved_model.load(str(path)).signatures
    for request in requests:
        inputs = {
            name: tf.constant(tf.make_ndarray(proto))
            for name, proto in request.inputs.items()
        }
        found = signatures[request.model_spec.signature_name](**inputs)
        assert {len(output) for output in found.values()} == {1}


@pytest.mark.parametrize(("given", "pads"), [(TEXT, False), (SOURCE_IDS, True)])
def test_the_server_reads_it(given, pads, tmp_path):
    signature = GraphSignature(lambda **inputs: inputs, [given], max_batch=33)
    write_batching(tmp_path, 33, {"serving_default": signature})
    parameters = read(BatchingParameters, tmp_path / BATCHING)
    assert parameters.max_batch_size.value == 33
    assert list(parameters.allowed_batch_sizes) == sizes_up_to(33)
    assert parameters.pad_variable_length_inputs == pads


def test_they_are_written_without_the_client():
    code = (
        "import sys, keras_attnvariants as kav\n"
        "kav.serving.export, kav.serving.write_deployment\n"
        "found = [n for n in sys.modules if n.startswith(('grpc.', 'httpx.'))\n"
        "         or n == 'keras_attnvariants.serving.client']\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_function_is_described_by_its_inputs_and_outputs():
    def function(text):
        """The lengths of texts."""
        return {"lengths": tf.strings.length(text)}

    info = signature_info(GraphSignature(function, [TEXT], max_batch=3))
    assert info["doc"] == "The lengths of texts."
    assert info["inputs"] == {
        "text": {"doc": TEXT.doc, "dtype": "string", "shape": [None]}
    }
    assert info["outputs"]["lengths"] == {
        "doc": OUTPUTS["lengths"],
        "dtype": "int32",
        "shape": [None],
    }


def test_the_info_describes_the_signatures(exported, tokenizer):
    info = json.loads((exported["hc-sa"] / INFO).read_text())
    assert info["versions"]["tensorflow"] == tf.__version__
    assert info["versions"]["tensorflow_text"]
    assert info["tokenizer_sha256"] == tokenizer.sha256
    assert {name: info["options"][name] for name in LIMITS} == LIMITS
    assert info["precision"]["dtype"] == "float32"
    assert info["precision"]["exact"]
    assert info["status"] == {str(int(n)): doc for n, doc in STATUS_DOCS.items()}
    declared = read_saved_model(exported["hc-sa"]).meta_graphs[0].signature_def
    written = {"serving_default", "translate_ids", "nbest", "align", "score"}
    assert info["signatures"].keys() == written
    assert set(declared) == {*written, "__saved_model_init_op"}
    for name, described in info["signatures"].items():
        for kind in ("inputs", "outputs"):
            tensors = getattr(declared[name], kind)
            assert described[kind].keys() == set(tensors)
            for key, tensor in tensors.items():
                entry = described[kind][key]
                assert entry["dtype"] == tf.as_dtype(tensor.dtype).name
                shape = tf.TensorShape(tensor.tensor_shape).as_list()
                assert entry["shape"] == shape
                assert entry["doc"]
