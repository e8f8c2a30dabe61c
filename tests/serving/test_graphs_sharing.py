"""The size of exported graphs, and nodes that are in them once."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.core.protobuf import saved_model_pb2

from keras_attnvariants import presets
from keras_attnvariants.backend import is_onednn_exact
from keras_attnvariants.models import SinusoidalPositions
from keras_attnvariants.serving import export
from keras_attnvariants.serving.graphs import read_saved_model
from keras_attnvariants.serving.graphs import redirected
from keras_attnvariants.serving.graphs import share_in_function
from keras_attnvariants.serving.graphs import share_nodes
from keras_attnvariants.serving.graphs import write_saved_model
from tests.serving.tools import FIRST_IS_FAST

STRING = tf.string.as_datatype_enum


def graph_of(path: Path):
    """The `GraphDef` of a SavedModel."""
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((path / "saved_model.pb").read_bytes())
    return saved.meta_graphs[0].graph_def


def share(path: Path) -> None:
    """Shares the nodes of a SavedModel, in its file."""
    saved = read_saved_model(path)
    share_nodes(saved)
    write_saved_model(path, saved)


def constants(nodes) -> list[bytes]:
    """Values of the constants among nodes, except texts and paths."""
    return [
        node.attr["value"].SerializeToString(deterministic=True)
        for node in nodes
        if node.op == "Const" and not node.input and node.attr["dtype"].type != STRING
    ]


def size_of_graph(path: Path) -> int:
    """Bytes of all files of a SavedModel except its variables."""
    files = (file for file in path.rglob("*") if file.is_file())
    return sum(f.stat().st_size for f in files if f.parent.name != "variables")


@pytest.mark.slow
def test_a_graph_holds_the_table_of_positions_once(exported):
    graph = graph_of(exported["base"])
    nodes = [graph.node, *(f.node_def for f in graph.library.function)]
    values = [value for part in nodes for value in constants(part)]
    positions = SinusoidalPositions(20)  # fewer than the graph has
    positions.build((None, None, 16))
    table = np.asarray(positions.table).tobytes()
    assert sum(table in value for value in values) == 1


@pytest.mark.parametrize("variant", FIRST_IS_FAST)
def test_no_function_holds_a_constant_twice(variant, exported):
    for function in graph_of(exported[variant]).library.function:
        found = Counter(constants(function.node_def))
        assert max(found.values(), default=1) == 1


def test_a_tiny_model_has_a_small_graph(exported):
    assert size_of_graph(exported["hc-sa"]) < 1.6e6


def test_a_graph_holds_the_tokenizer_once(exported):
    graph = graph_of(exported["hc-sa"])
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    assert [node.op for node in nodes].count("SentencepieceOp") == 1


@pytest.mark.slow
def test_the_quickstart_model_has_a_graph_of_less_than_5_megabytes(tokenizer, tmp_path):
    """With 8-bit integers, the weights of the decoder are in it."""
    model = presets.get("kav/hc-sa/bible").build(vocabulary_size=4000)
    precision = "int8" if is_onednn_exact() else "int8-weights"
    assert size_of_graph(export(model, tokenizer, tmp_path, precision=precision)) < 5e6


def test_sharing_changes_no_result(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None])])
    def function(x):
        def body(i, y):
            one = tf.constant([1.0, 2.0])
            again = tf.constant([1.0, 2.0])
            return i + 1, y * one + again + tf.cast(tf.constant([1, 2]), tf.float32)

        x = tf.where(tf.size(x) > 0, x[:2] + [1.0, 2.0], [3.0, 4.0])
        return {"y": tf.while_loop(lambda i, y: i < 3, body, (0, x))[1]}

    tf.saved_model.save(tf.Module(), str(tmp_path), {"serving_default": function})
    before = [len(f.node_def) for f in graph_of(tmp_path).library.function]
    share(tmp_path)
    after = [len(f.node_def) for f in graph_of(tmp_path).library.function]
    assert sum(after) < sum(before)
    loaded = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    x = tf.constant([5.0, 7.0])
    np.testing.assert_array_equal(loaded(x)["y"], function(x)["y"])


def test_sharing_twice_is_sharing_once(exported, tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(
        (exported["hc-sa"] / "saved_model.pb").read_bytes()
    )
    before = graph_of(tmp_path)
    share(tmp_path)
    assert graph_of(tmp_path) == before


def test_equal_nodes_are_one_and_unused_ones_are_gone(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def function(x):
        tf.exp(x)  # not used
        rows, again = tf.shape(x)[0], tf.shape(x)[0]
        return {"y": tf.reshape(x, [rows, -1]) + tf.reshape(x, [again, -1])}

    tf.saved_model.save(tf.Module(), str(tmp_path), {"serving_default": function})
    share(tmp_path)
    functions = graph_of(tmp_path).library.function
    operators = [[node.op for node in f.node_def] for f in functions]
    [found] = [Counter(names) for names in operators if "Shape" in names]
    assert "Exp" not in found
    assert {found[n] for n in ("Shape", "StridedSlice", "Pack", "Reshape")} == {1}
    loaded = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    np.testing.assert_array_equal(loaded(tf.ones([2, 3]))["y"], np.full([2, 3], 2.0))


def test_inputs_of_every_form_are_redirected():
    replaced = {"b": "a"}
    assert redirected("b:output:0", replaced) == "a:output:0"
    assert redirected("^b", replaced) == "^a"
    assert redirected("b", replaced) == "a"
    assert redirected("bb:output:0", replaced) == "bb:output:0"


def test_every_result_comes_from_a_node_that_is_kept():
    function = function_pb2.FunctionDef()
    for index in range(40):
        function.node_def.add(name=f"copy_{index}", op="Identity", input=["argument"])
        function.ret[f"result_{index}"] = f"copy_{index}:output:0"
    share_in_function(function)
    assert [node.name for node in function.node_def] == ["copy_0"]
    assert set(function.ret.values()) == {"copy_0:output:0"}
