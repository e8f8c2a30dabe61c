"""Shapes of requests: wrong ones are refused by name, all are declared for clients."""

import pytest
import tensorflow as tf

from keras_attnvariants.serving.graphs import read_saved_model
from keras_attnvariants.serving.graphs import write_saved_model
from keras_attnvariants.serving.inputs import LENGTHS
from keras_attnvariants.serving.inputs import SOURCE_IDS
from keras_attnvariants.serving.inputs import TEXT
from keras_attnvariants.serving.inputs import GraphSignature
from keras_attnvariants.serving.inputs import declare_shapes


@pytest.fixture(scope="module")
def signatures():
    def count(text):
        return {"characters": tf.strings.length(text)}

    def add(source_ids, lengths):
        return {"sums": tf.reduce_sum(source_ids, axis=1) + lengths}

    return {
        "count": GraphSignature(count, [TEXT], max_batch=3),
        "add": GraphSignature(add, [SOURCE_IDS, LENGTHS], max_batch=3),
    }


@pytest.fixture(scope="module")
def folder(signatures, tmp_path_factory):
    path = tmp_path_factory.mktemp("shapes")
    graphs = {
        name: signature.graph.get_concrete_function()
        for name, signature in signatures.items()
    }
    tf.saved_model.save(tf.Module(), str(path), graphs)
    saved = read_saved_model(path)
    declare_shapes(saved, signatures)
    write_saved_model(path, saved)
    return path


@pytest.fixture(scope="module")
def served(folder):
    return tf.saved_model.load(folder).signatures


@pytest.mark.parametrize("count", [0, 1, 3])
def test_right_shapes_are_accepted(count, served):
    characters = served["count"](text=tf.constant(["ab"] * count, tf.string))
    assert characters["characters"].numpy().tolist() == [2] * count
    ids = tf.ones((count, 4), tf.int32)
    sums = served["add"](source_ids=ids, lengths=tf.ones(count, tf.int32))["sums"]
    assert sums.numpy().tolist() == [5] * count


@pytest.mark.parametrize(
    ("signature", "inputs", "message"),
    [
        (
            "count",
            {"text": tf.constant("secret")},
            "`text` .*[sentences]. Received: []",
        ),
        ("count", {"text": tf.fill((1, 20000), "secret")}, "`text` .*[1 20000]"),
        ("count", {"text": tf.fill((1, 1, 2), "secret")}, "`text` .*[1 1 2]"),
        ("count", {"text": tf.fill((4,), "secret")}, "`text` .*at most 3 .*[4]"),
        (
            "add",
            {"source_ids": tf.fill((2,), 4321), "lengths": tf.fill((2,), 4321)},
            "`source_ids` .*[sentences, positions]. Received: [2]",
        ),
        (
            "add",
            {"source_ids": tf.fill((2, 2), 4321), "lengths": tf.fill((2, 1), 4321)},
            "`lengths` .*[sentences]. Received: [2 1]",
        ),
        (
            "add",
            {"source_ids": tf.fill((2, 2), 4321), "lengths": tf.constant(4321)},
            "`lengths` .*[sentences]. Received: []",
        ),
        (
            "add",
            {"source_ids": tf.fill((2, 2), 4321), "lengths": tf.fill((3,), 4321)},
            "`lengths` must hold as many sentences as `source_ids`. Received: [3]",
        ),
    ],
)
def test_wrong_shapes_are_refused_by_name_and_echo_nothing(
    signature, inputs, message, served
):
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        served[signature](**inputs)
    text = str(error.value).replace("] [", " [")
    assert all(part in text for part in message.split(".*"))
    assert "secret" not in text
    assert "4321" not in text


def test_clients_read_the_shapes_in_the_signatures(folder):
    declared = read_saved_model(folder).meta_graphs[0].signature_def

    def sizes(signature, name):
        shape = declared[signature].inputs[name].tensor_shape
        return None if shape.unknown_rank else [dim.size for dim in shape.dim]

    assert sizes("count", "text") == [-1]
    assert sizes("add", "source_ids") == [-1, -1]
    assert sizes("add", "lengths") == [-1]
