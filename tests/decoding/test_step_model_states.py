"""Rows of nested states: gathered, reordered, taken, replaced, padded."""

import keras
import numpy as np
from keras import ops

from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.decoding.step_model import collect_alignments
from keras_attnvariants.decoding.step_model import gather_all
from keras_attnvariants.decoding.step_model import gather_beams
from keras_attnvariants.decoding.step_model import pad_state
from keras_attnvariants.decoding.step_model import pad_tensor
from keras_attnvariants.decoding.step_model import reorder
from keras_attnvariants.decoding.step_model import replace_rows
from keras_attnvariants.decoding.step_model import select_sentences
from keras_attnvariants.decoding.step_model import take_rows
from keras_attnvariants.decoding.step_model import with_structure_of

PARENTS = np.array([[1, 1, 0], [2, 0, 2]], "int32")


def tensor(*shape, seed=0):
    values = np.random.default_rng(seed).normal(size=shape).astype("float32")
    return ops.convert_to_tensor(values)


def array(x):
    return ops.convert_to_numpy(x)


def test_beams_are_gathered_per_sentence():
    x = tensor(2, 3, 4)
    expected = np.take_along_axis(array(x), PARENTS[:, :, None], axis=1)
    found = gather_beams(x, ops.convert_to_tensor(PARENTS))
    np.testing.assert_array_equal(array(found), expected)


def test_all_tensors_are_gathered():
    tree = {"x": (tensor(2, 3, 4), tensor(2, 3))}
    found = gather_all(tree, ops.convert_to_tensor(PARENTS))
    for x, y in zip(found["x"], tree["x"], strict=True):
        expected = gather_beams(y, ops.convert_to_tensor(PARENTS))
        np.testing.assert_array_equal(array(x), array(expected))


def test_changed_tensors_are_reordered_and_others_are_not():
    same, changed, shared = tensor(2, 3), tensor(2, 3, 4), tensor(2, 5)
    old = {"same": same, "changed": (tensor(2, 3, 4, seed=1),), SHARED: shared}
    new = {"same": same, "changed": [changed], SHARED: tensor(2, 5, seed=2)}
    found = reorder(new, old, ops.convert_to_tensor(PARENTS))
    keras.tree.assert_same_structure(found, old)
    assert found["same"] is same
    assert found[SHARED] is new[SHARED]
    expected = np.take_along_axis(array(changed), PARENTS[:, :, None], axis=1)
    np.testing.assert_array_equal(array(found["changed"][0]), expected)


def test_lists_become_the_tuples_that_they_were():
    a, b = tensor(2), tensor(3)
    assert with_structure_of({"x": (a,), "y": b}, {"x": [b], "y": a}) == {
        "x": (b,),
        "y": a,
    }


def test_rows_are_taken_and_replaced():
    tree = {"x": tensor(4, 2), "y": (tensor(4),)}
    rows = ops.convert_to_tensor(np.array([2, 0], "int32"))
    part = take_rows(tree, rows)
    np.testing.assert_array_equal(array(part["x"]), array(tree["x"])[[2, 0]])
    zeros = keras.tree.map_structure(ops.zeros_like, part)
    found = replace_rows(tree, zeros, rows)
    assert not array(found["x"])[[0, 2]].any()
    np.testing.assert_array_equal(
        array(found["y"][0])[[1, 3]], array(tree["y"][0])[[1, 3]]
    )


def test_single_values_belong_to_all_rows():
    class Options:
        pass

    options = Options()
    options.one, options.scalar, options.each = 3, ops.ones(()), tensor(4)
    found = select_sentences(options, ops.convert_to_tensor(np.array([2, 0], "int32")))
    assert (found.one, float(found.scalar)) == (3, 1.0)
    np.testing.assert_array_equal(array(found.each), array(options.each)[[2, 0]])


def test_states_are_padded_with_zeros_after_their_rows():
    state = {"cache": tensor(2, 3, 1), "sum": tensor(2, 3)}
    larger = {"cache": ops.ones((4, 5, 1)), "sum": ops.ones((4, 3))}
    found = pad_state(state, larger)
    assert found["sum"] is state["sum"]
    cache = array(found["cache"])
    np.testing.assert_array_equal(cache[:, :3], array(state["cache"]))
    assert cache.shape == (2, 5, 1) and not cache[:, 3:].any()
    assert pad_tensor(state["sum"], larger["sum"]) is state["sum"]


def test_alignments_are_those_of_the_beams_that_predicted():
    rng = np.random.default_rng(0)
    weights = rng.random((2, 4, 3, 5)).astype("float32")  # [B, T, K, S]
    beams = rng.integers(0, 3, (2, 2, 4)).astype("int32")  # [B, N, T]
    is_token = rng.random((2, 2, 4)) < 0.7
    tensors = map(ops.convert_to_tensor, (weights, beams, is_token))
    found = ops.convert_to_numpy(collect_alignments(*tensors))
    for b, n, t in np.ndindex(2, 2, 4):
        expected = weights[b, t, beams[b, n, t]] * is_token[b, n, t]
        np.testing.assert_array_equal(found[b, n, t], expected)
