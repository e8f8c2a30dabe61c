"""The file that describes a SavedModel."""

import json

import tensorflow as tf

from keras_attnvariants.serving.counting import operators_per_step
from keras_attnvariants.serving.export import LARGE_SIGNATURES
from keras_attnvariants.serving.info import OUTPUTS
from keras_attnvariants.serving.info import SIGNATURES
from keras_attnvariants.serving.info import signature_info
from keras_attnvariants.serving.inputs import TEXT
from keras_attnvariants.serving.inputs import Signature
from keras_attnvariants.serving.operators import read_saved_model
from keras_attnvariants.serving.status import STATUS_DOCS
from keras_attnvariants.serving.versions import INFO
from tests.serving.tools import LIMITS


def test_a_function_is_described_by_its_inputs_and_outputs():
    def function(text):
        return {"lengths": tf.strings.length(text)}

    info = signature_info(Signature(function, [TEXT], max_batch=3))
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
    assert info["operators_per_step"] == operators_per_step(exported["hc-sa"])
    assert info["precision"]["dtype"] == "float32"
    assert info["precision"]["exact"]
    assert info["status"] == {str(int(n)): doc for n, doc in STATUS_DOCS.items()}
    declared = read_saved_model(exported["hc-sa"]).meta_graphs[0].signature_def
    written = SIGNATURES.keys() - LARGE_SIGNATURES
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
