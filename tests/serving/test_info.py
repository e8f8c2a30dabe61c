"""The file that describes a SavedModel."""

import json

import tensorflow as tf

from keras_attnvariants.serving.info import INFO
from keras_attnvariants.serving.info import OUTPUTS
from keras_attnvariants.serving.info import SIGNATURES
from keras_attnvariants.serving.info import signature_info
from keras_attnvariants.serving.info import tensor_info
from tests.serving.tools import LIMITS


def test_a_size_that_varies_is_null():
    assert tensor_info(tf.TensorSpec([None, 3], tf.int32)) == {
        "dtype": "int32",
        "shape": [None, 3],
    }


def test_a_function_is_described_by_its_inputs_and_outputs():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def function(text):
        return {"lengths": tf.strings.length(text)}

    info = signature_info(function.get_concrete_function())
    assert info["inputs"] == {"text": {"dtype": "string", "shape": [None]}}
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
    loaded = tf.saved_model.load(str(exported["hc-sa"])).signatures
    assert info["signatures"].keys() == loaded.keys() == SIGNATURES.keys()
    for name, signature in loaded.items():
        described = info["signatures"][name]
        assert (
            described["inputs"].keys() == signature.structured_input_signature[1].keys()
        )
        assert described["outputs"].keys() == signature.structured_outputs.keys()
        for output, spec in signature.structured_outputs.items():
            entry = described["outputs"][output]
            assert entry["dtype"] == spec.dtype.name
            assert entry["shape"] == spec.shape.as_list()
            assert entry["doc"]
