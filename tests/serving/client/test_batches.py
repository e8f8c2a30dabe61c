"""Splitting requests and putting replies together."""

import numpy as np
import pytest

from keras_attnvariants.serving.client.batches import batches
from keras_attnvariants.serving.client.batches import checked_inputs
from keras_attnvariants.serving.client.batches import joined
from keras_attnvariants.serving.client.batches import limit_in
from keras_attnvariants.serving.client.errors import ServingError
from keras_attnvariants.serving.client.tensors import Signature
from keras_attnvariants.serving.client.tensors import TensorSpec

TEXTS = Signature(
    "pair",
    {
        "source": TensorSpec("string", (None,)),
        "target": TensorSpec("string", (None,)),
        "seed": TensorSpec("int32", ()),
    },
    {},
)
IDS = Signature(
    "ids",
    {
        "source_ids": TensorSpec("int32", (None, None)),
        "lengths": TensorSpec("int32", (None,)),
    },
    {},
)


def test_rows_of_equal_length_go_together_and_come_back_in_order():
    source = ["aaaa", "b", "cccccc", "", "dd"]
    inputs = checked_inputs(TEXTS, {"source": source, "target": [""] * 5, "seed": 7})
    parts = list(batches(TEXTS, inputs, 2))
    assert [rows.tolist() for rows, _ in parts] == [[3, 1], [4, 0], [2]]
    assert parts[1][1]["source"].tolist() == [b"dd", b"aaaa"]
    assert all(part["seed"] == 7 for _, part in parts)
    whole = joined(
        [rows for rows, _ in parts],
        [{"x": np.array([len(t) for t in part["source"]])} for _, part in parts],
    )
    assert whole["x"].tolist() == [4, 1, 6, 0, 2]


def test_ids_are_sorted_by_their_lengths():
    inputs = {"source_ids": np.ones((3, 9), "int32"), "lengths": [9, 1, 5]}
    parts = list(batches(IDS, checked_inputs(IDS, inputs), 1))
    assert [rows.tolist() for rows, _ in parts] == [[1], [2], [0]]
    assert parts[0][1]["source_ids"].shape == (1, 9)


def test_no_rows_are_one_batch():
    inputs = checked_inputs(TEXTS, {"source": [], "target": [], "seed": 1})
    [(rows, part)] = batches(TEXTS, inputs, 4)
    assert rows.tolist() == part["source"].tolist() == []


def test_widths_that_differ_are_padded():
    rows = [np.array([1]), np.array([0, 2])]
    parts = [
        {"n": np.ones((1, 2, 3)), "t": np.array([["x"]], object)},
        {"n": np.ones((2, 2, 1)), "t": np.array([["a", "b"], ["c", "d"]], object)},
    ]
    whole = joined(rows, parts)
    assert whole["n"].shape == (3, 2, 3)
    assert whole["n"].sum(axis=(1, 2)).tolist() == [2, 6, 2]
    assert whole["t"].tolist() == [["a", "b"], ["x", ""], ["c", "d"]]


def test_a_reply_of_other_rows_is_refused():
    with pytest.raises(ServingError, match="`x` has the shape"):
        joined([np.array([0, 1])], [{"x": np.zeros(3)}])


def test_what_a_refusal_says_about_sentences():
    graph = "`text` may hold at most 33 sentences (max_batch). Received: [34]"
    server = "Task size 34 is larger than maximum input batch size 33"
    assert limit_in(graph) == limit_in(server) == 33
    assert limit_in("at most 33 letters") == 0


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"source": ["a"]}, "'pair' takes `seed`, `source`, `target`.*`source`$"),
        ({"source": ["a"], "target": ["a", "b"], "seed": 1}, "equally many rows"),
        ({"source": "a", "target": ["a"], "seed": 1}, "`source` must have 1 axes"),
        ({"source": [["a"]], "target": ["a"], "seed": 1}, "`source` must have 1 axes"),
        ({"source": ["a"], "target": ["a"], "seed": "x"}, "`seed` must be int32"),
    ],
)
def test_wrong_inputs_are_refused_by_name(inputs, message):
    with pytest.raises(ValueError, match=message):
        checked_inputs(TEXTS, inputs)
