"""Checks of what layers are given and return; see also `test_base`."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_attnvariants.attention.checks import check_lengths
from keras_attnvariants.attention.checks import check_memory
from keras_attnvariants.attention.checks import check_returned
from keras_attnvariants.attention.checks import check_scores_wanted
from keras_attnvariants.attention.checks import check_weights


def layer(*roles, has_scores=True):
    return SimpleNamespace(roles=frozenset(roles), has_scores=has_scores)


def sequence(length):
    return keras.KerasTensor((2, length, 3))


@pytest.mark.parametrize("lengths", [(4, 4), (None, 5), (4, None)])
def test_lengths_that_may_be_equal_pass(lengths):
    check_lengths(layer("encoder"), *map(sequence, lengths))


def test_two_lengths_are_for_cross_attention():
    check_lengths(layer("encoder", "cross"), sequence(4), sequence(5))
    with pytest.raises(ValueError, match=r"the same length.*Received: lengths \(4, 5"):
        check_lengths(layer("encoder", "decoder"), sequence(4), sequence(5))


def test_scores_are_refused_where_there_are_none():
    check_scores_wanted(layer(), True)
    check_scores_wanted(layer(has_scores=False), False)
    with pytest.raises(ValueError, match="return_attention_scores=True"):
        check_scores_wanted(layer(has_scores=False), True)


def test_cross_attention_alone_needs_a_memory():
    check_memory(layer("decoder", "cross"), None)
    check_memory(layer("cross"), {})
    with pytest.raises(ValueError, match="`memory` must be .*Received: None"):
        check_memory(layer("cross"), None)


def test_a_tuple_of_the_right_length_is_returned():
    found = ("context", None)
    assert check_returned(layer(), "attend", found, "context, weights") is found


@pytest.mark.parametrize("found", [np.zeros((2, 3)), ["a", "b"], (1,), (1, 2, 3), None])
def test_anything_else_is_refused(found):
    message = f"`attend`.*\\(context, weights\\).*Received: {type(found).__name__}"
    with pytest.raises(TypeError, match=message):
        check_returned(layer(), "attend", found, "context, weights")


def test_weights_have_four_axes():
    check_weights(layer(), "attend", np.zeros((2, 4, 3, 3)))
    for weights, shape in ((None, "None"), (np.zeros((2, 3)), r"\(2, 3\)")):
        with pytest.raises(TypeError, match=f"four axes.*shape {shape}"):
            check_weights(layer(), "attend", weights)
