"""Operators in our exports, and in SavedModels made by hand."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_attnvariants.backend import jit
from keras_attnvariants.backend.onednn import OPERATOR
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.serving import export
from keras_attnvariants.serving import operators
from keras_attnvariants.serving.exported import ExportedModel
from keras_attnvariants.serving.exported import StoredWeights
from keras_attnvariants.serving.graphs import COMPUTING
from keras_attnvariants.serving.graphs import LOADING
from keras_attnvariants.serving.graphs import ONEDNN_OPERATORS
from keras_attnvariants.serving.graphs import PYTHON_OPERATORS
from keras_attnvariants.serving.graphs import SAVING
from keras_attnvariants.serving.graphs import TEXT_OPERATORS
from keras_attnvariants.serving.graphs import unservable
from tests.quantization import quantizing
from tests.serving.tools import FIRST_IS_FAST
from tests.serving.tools import LIMITS
from tests.serving.tools import sharp_model

SENTENCEPIECE = {
    "serving_default": {"Op", "TokenizeOp", "DetokenizeOp"},
    "nbest": {"Op", "TokenizeOp", "DetokenizeOp"},
    "align": {"Op", "TokenizeOp", "DetokenizeOp", "IdToStringOp"},
    "score": {"Op", "TokenizeOp", "IdToStringOp"},
    "translate_ids": set(),
}


@pytest.mark.parametrize("variant", FIRST_IS_FAST)
def test_signatures_use_stock_operators_and_sentencepiece_only(variant, exported):
    found = operators(exported[variant])
    assert found.keys() == {*SENTENCEPIECE, ""}
    for name, expected in SENTENCEPIECE.items():
        text = {f"Sentencepiece{suffix}" for suffix in expected}
        assert {op for op in found[name] if op.startswith("Sentencepiece")} == text
        assert found[name] - text <= COMPUTING
    assert found[""] <= COMPUTING | TEXT_OPERATORS | LOADING | SAVING


@pytest.mark.parametrize("variant", FIRST_IS_FAST)
def test_xla_is_not_required(variant, exported):
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((exported[variant] / "saved_model.pb").read_bytes())
    for function in saved.meta_graphs[0].graph_def.library.function:
        assert not function.attr["_XlaMustCompile"].b


@pytest.mark.parametrize("variant", FIRST_IS_FAST)
def test_weights_are_stored_once(variant, exported, models):
    data = list((exported[variant] / "variables").glob("variables.data-*"))
    size = sum(path.stat().st_size for path in data)
    weights = 4 * sum(int(np.prod(w.shape)) for w in models[variant].weights)
    # The rest is a description of the objects, a few bytes a weight.
    assert weights <= size < weights + 40_000


@pytest.mark.slow
def test_a_quantized_model_runs_wherever_tensorflow_does(tmp_path):
    model = sharp_model("hc-sa", num_layers=1)
    with quantizing():
        model.quantize("int8")
    path = export(model, None, tmp_path, beam_size=2, **LIMITS)
    assert not unservable(set().union(*operators(path).values()))
    assert "_QuantizedMatMul" not in set().union(*operators(path).values())
    ids = np.array([[4, 5, 6, 7]], "int32")
    served = tf.saved_model.load(path).signatures["translate_ids"]
    found = served(source_ids=tf.constant(ids), lengths=tf.constant([4]))
    steps = ExportedModel(model, StoredWeights(model), constant=False)
    search = jit(lambda ids: beam_search(steps, ids, beam_size=2), xla=False)
    expected = search(tf.constant(ids))
    length = int(expected.lengths[0, 0])
    np.testing.assert_array_equal(found["ids"][0, :length], expected.ids[0, 0, :length])


def test_operators_are_found_in_functions_of_functions(tmp_path):
    @tf.function
    def inner(x):
        return tf.math.erfinv(x)

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def outer(x):
        return {"y": tf.cond(tf.size(x) > 1, lambda: inner(x), lambda: tf.math.tan(x))}

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def other(x):
        return {"y": tf.numpy_function(np.cos, [x], tf.float32)}

    signatures = {"outer": outer, "other": other}
    tf.saved_model.save(tf.Module(), str(tmp_path), signatures)
    found = operators(tmp_path)
    assert {"Erfinv", "Tan", "Size"} <= found["outer"]
    assert "PyFunc" in found["other"] - found["outer"]
    assert unservable(set().union(*found.values())) == {"PyFunc"}


def test_operators_of_other_libraries_cannot_be_served():
    found = {"MatMul", "SentencepieceOp", "Addons>GatherTree"}
    assert unservable(found) == {"Addons>GatherTree"}


FILES = {"MatchingFiles", "ReadFile", "SaveV2", "WholeFileReaderV2", "WriteFile"}


def test_all_are_operators_of_tensorflow_itself():
    for name in (COMPUTING | LOADING | SAVING) - ONEDNN_OPERATORS:
        assert hasattr(tf.raw_ops, name), name


def test_none_reaches_a_file_or_python():
    assert not COMPUTING & (FILES | PYTHON_OPERATORS | {"RestoreV2", "Save", "Restore"})


def test_the_operator_of_onednn_is_the_one_that_is_allowed():
    assert ONEDNN_OPERATORS == {OPERATOR}
