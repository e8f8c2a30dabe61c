"""Checking calls, splitting them, and putting replies together."""

import numpy as np
import pytest

from keras_attnvariants.serving.calls import Call
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import TensorSpec
from keras_attnvariants.serving.calls import checked_call
from keras_attnvariants.serving.calls import limit_in

TEXTS = Signature(
    "pair",
    {
        "source": TensorSpec("string", (None,)),
        "target": TensorSpec("string", (None,)),
        "seed": TensorSpec("int32", (None,)),
    },
    {
        "x": TensorSpec("int64", (None,)),
        "n": TensorSpec("float64", (None, None, None)),
        "t": TensorSpec("string", (None, None)),
    },
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
    inputs = {"source": source, "target": [""] * 5, "seed": range(5)}
    call = checked_call(TEXTS, inputs, ["x"])
    parts = list(call.batches(2))
    assert [rows.tolist() for rows, _ in parts] == [[3, 1], [4, 0], [2]]
    assert parts[1][1]["source"].tolist() == [b"dd", b"aaaa"]
    assert [part["seed"].tolist() for _, part in parts] == [[3, 1], [4, 0], [2]]
    whole = call.joined(
        [rows for rows, _ in parts],
        [{"x": np.array([len(t) for t in part["source"]])} for _, part in parts],
    )
    assert whole["x"].tolist() == [4, 1, 6, 0, 2]


def test_ids_are_sorted_by_their_lengths():
    inputs = {"source_ids": np.ones((3, 9), "int32"), "lengths": [9, 1, 5]}
    parts = list(checked_call(IDS, inputs, None).batches(1))
    assert [rows.tolist() for rows, _ in parts] == [[1], [2], [0]]
    assert parts[0][1]["source_ids"].shape == (1, 9)


def test_no_rows_are_one_batch():
    call = checked_call(TEXTS, {"source": [], "target": [], "seed": []}, None)
    [(rows, part)] = call.batches(4)
    assert rows.tolist() == part["source"].tolist() == []


def test_widths_that_differ_are_padded():
    rows = [np.array([1]), np.array([0, 2])]
    parts = [
        {"n": np.ones((1, 2, 3)), "t": np.array([["x"]], object)},
        {"n": np.ones((2, 2, 1)), "t": np.array([["a", "b"], ["c", "d"]], object)},
    ]
    whole = Call(TEXTS, {}, ["n", "t"]).joined(rows, parts)
    assert whole["n"].shape == (3, 2, 3)
    assert whole["n"].sum(axis=(1, 2)).tolist() == [2, 6, 2]
    assert whole["t"].tolist() == [["a", "b"], ["x", ""], ["c", "d"]]


@pytest.mark.parametrize(
    "reply",
    [
        np.zeros(3, "int64"),
        np.zeros(2, "int32"),
        np.zeros((2, 1), "int64"),
        np.zeros((), "int64"),
        np.array(["a", "b"], object),
    ],
)
def test_an_output_that_the_signature_does_not_promise_is_refused(reply):
    with pytest.raises(ValueError, match="`x` must be int64 with 1 axes and 2 rows"):
        Call(TEXTS, {}, ["x"]).joined([np.array([0, 1])], [{"x": reply}])


def test_a_refusal_names_the_limit_of_sentences():
    graph = "`text` may hold at most 33 sentences (max_batch). Received: [34]"
    server = "Task size 34 is larger than maximum input batch size 33"
    assert limit_in(graph) == limit_in(server) == 33
    assert limit_in("at most 33 letters") == 0


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"source": ["a"]}, "'pair' takes `seed`, `source`, `target`.*`source`$"),
        ({"source": ["a"], "target": ["a", "b"], "seed": [1]}, "same number of rows"),
        ({"source": "a", "target": ["a"], "seed": [1]}, "`source` must have 1 axes"),
        (
            {"source": [["a"]], "target": ["a"], "seed": [1]},
            "`source` must have 1 axes",
        ),
        ({"source": ["a"], "target": ["a"], "seed": ["x"]}, "`seed` must be int32"),
    ],
)
def test_wrong_inputs_are_refused_by_name(inputs, message):
    with pytest.raises(ValueError, match=message):
        checked_call(TEXTS, inputs, None)


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("string", [1], "`x` must hold strings. Received: 1"),
        ("string", [None], "`x` must hold strings. Received: None"),
        ("int32", [1.5], "`x` must be int32. Received: float64"),
        ("int32", ["a"], "`x` must be int32. Received: str"),
        ("int32", [[1], [1, 2]], "`x` must have rows of equal length"),
    ],
)
def test_values_of_other_types_are_refused_by_name(dtype, value, message):
    with pytest.raises(ValueError, match=message):
        TensorSpec(dtype, (None,)).array("x", value)


def test_integers_fit_any_number():
    assert TensorSpec("int32", (None,)).array("x", [1, 2]).dtype == np.int32
    assert TensorSpec("float32", (None,)).array("x", [1, 2]).dtype == np.float32
