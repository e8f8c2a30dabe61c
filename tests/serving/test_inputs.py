"""Shapes of requests: refused by name where they are wrong, declared for clients."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.serving import Status
from keras_attnvariants.serving.inputs import LENGTHS
from keras_attnvariants.serving.inputs import SOURCE_IDS
from keras_attnvariants.serving.inputs import TEXT
from keras_attnvariants.serving.inputs import Signature
from keras_attnvariants.serving.inputs import declare_shapes
from keras_attnvariants.serving.inputs import status_of_ids
from keras_attnvariants.serving.inputs import status_of_search
from keras_attnvariants.serving.inputs import without_failed
from keras_attnvariants.serving.operators import read_saved_model
from keras_attnvariants.serving.results import STATUS_DOCS


@pytest.fixture(scope="module")
def signatures():
    def count(text):
        return {"characters": tf.strings.length(text)}

    def add(source_ids, lengths):
        return {"sums": tf.reduce_sum(source_ids, axis=1) + lengths}

    return {
        "count": Signature(count, [TEXT], max_batch=3),
        "add": Signature(add, [SOURCE_IDS, LENGTHS], max_batch=3),
    }


@pytest.fixture(scope="module")
def folder(signatures, tmp_path_factory):
    path = tmp_path_factory.mktemp("shapes")
    graphs = {
        name: signature.graph.get_concrete_function()
        for name, signature in signatures.items()
    }
    tf.saved_model.save(tf.Module(), str(path), graphs)
    declare_shapes(path, signatures)
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


PAD = 0


def hypotheses(lengths):
    """One hypothesis for each sentence, of ones."""
    count = len(lengths)
    return Hypotheses(
        ids=tf.cast(tf.sequence_mask(lengths, 3), tf.int32)[:, None],
        scores=tf.fill((count, 1), -2.0),
        log_probs=tf.fill((count, 1), -4.0),
        lengths=tf.constant(lengths)[:, None],
        alignments=tf.ones((count, 1, 3, 2)),
        token_log_probs=tf.fill((count, 1, 3), -1.0),
    )


def test_each_row_has_the_first_status_that_applies():
    rows = {
        (4, 5, 6): (3, Status.OK),
        (4, -7, 99): (1, Status.OK),  # nobody looks beyond the length
        (99, 99, 99): (0, Status.OK),
        (4, 5, 7): (4, Status.WRONG_LENGTH),
        (4, 5, 8): (-1, Status.WRONG_LENGTH),
        (4, 10, 5): (2, Status.UNKNOWN_ID),
        (-1, 4, 5): (3, Status.UNKNOWN_ID),
        (10, 0, 4): (3, Status.UNKNOWN_ID),
        (4, PAD, 5): (3, Status.PADDING_INSIDE),
    }
    lengths, expected = zip(*rows.values(), strict=True)
    status = status_of_ids(tf.constant(list(rows)), tf.constant(lengths), 10, PAD)
    assert status.numpy().tolist() == list(expected)


def test_no_row_has_no_status():
    ids, lengths = tf.zeros((0, 3), tf.int32), tf.zeros(0, tf.int32)
    assert status_of_ids(ids, lengths, 10, PAD).shape == (0,)
    ids, lengths = tf.zeros((2, 0), tf.int32), tf.constant([0, 1])
    found = status_of_ids(ids, lengths, 10, PAD).numpy().tolist()
    assert found == [Status.OK, Status.WRONG_LENGTH]


def test_a_search_without_a_result_is_reported():
    before = tf.constant([Status.OK, Status.OK, Status.UNKNOWN_ID])
    after = status_of_search(hypotheses([1, 0, 0]), before)
    assert after.numpy().tolist() == [
        Status.OK,
        Status.NOTHING_FOUND,
        Status.UNKNOWN_ID,
    ]


def test_a_sentence_that_failed_has_no_hypothesis():
    found = hypotheses([3, 1])
    left = without_failed(found, tf.constant([Status.OK, Status.UNKNOWN_ID]), PAD)
    for all_of, some in zip(found, left, strict=True):
        np.testing.assert_array_equal(some[0], all_of[0])
    assert not left.ids[1].numpy().any()
    assert left.lengths.numpy().tolist() == [[3], [0]]
    impossible = np.float32(IMPOSSIBLE)
    assert left.scores[1, 0] == left.log_probs[1, 0] == impossible
    assert not left.alignments[1].numpy().any()
    assert not left.token_log_probs[1].numpy().any()
    alone = found._replace(alignments=None, token_log_probs=None)
    alone = without_failed(alone, tf.constant([Status.OK] * 2), PAD)
    assert alone.alignments is None


def test_every_code_is_documented():
    assert STATUS_DOCS.keys() == set(Status)
