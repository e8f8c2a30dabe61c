"""The file that describes a SavedModel."""

import json

import tensorflow as tf

from keras_attnvariants.serving.export import LARGE_SIGNATURES
from keras_attnvariants.serving.info import OUTPUTS
from keras_attnvariants.serving.info import SIGNATURES
from keras_attnvariants.serving.info import operators_per_step
from keras_attnvariants.serving.info import signature_info
from keras_attnvariants.serving.inputs import TEXT
from keras_attnvariants.serving.inputs import Signature
from keras_attnvariants.serving.operators import read_saved_model
from keras_attnvariants.serving.results import STATUS_DOCS
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


def saved(path, function) -> None:
    """Saves a function of a float as a SavedModel."""
    function = tf.function(function, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(tf.Module(), str(path), {"serving_default": function})


def test_operators_of_called_functions_count_and_constants_do_not(tmp_path):
    twice = tf.function(lambda x: tf.tanh(tf.exp(x)))

    def body(i, x):
        return i + 1, twice(tf.identity(x)) + tf.constant(2.0)

    def loop(x):
        return {"y": tf.while_loop(lambda i, x: i < 3, body, (0, x))[1]}

    saved(tmp_path / "plain", loop)
    # i + 1 and the counter of the loop; Tanh, Exp and the sum.
    assert operators_per_step(tmp_path / "plain") == 5

    def nested(x):
        def outer(i, x):
            return i + 1, loop(x)["y"]

        return {"y": tf.while_loop(lambda i, x: i < 3, outer, (0, x))[1]}

    saved(tmp_path / "nested", nested)
    assert operators_per_step(tmp_path / "nested") == 5


def test_a_model_without_a_loop_has_no_steps(tmp_path):
    saved(tmp_path, lambda x: {"y": x + 1})
    assert operators_per_step(tmp_path) == 0
