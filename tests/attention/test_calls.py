"""Calls and their masks: what they exclude, alone and together."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import Call
from keras_attnvariants.attention import Masks
from keras_attnvariants.attention import Step
from keras_attnvariants.attention.calls import both
from keras_attnvariants.attention.calls import causal_pattern
from keras_attnvariants.attention.calls import mask_or_ones
from keras_attnvariants.attention.calls import near
from keras_attnvariants.attention.calls import zero_masked
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import to_numpy

KEY = lengths_mask([4, 2], 4)  # [2, 4]
PATTERN = np.random.default_rng(0).random((2, 3, 4)) < 0.5


def test_without_masks_there_is_none():
    assert Masks().combined(3, 4) is None
    assert Masks(query=KEY).combined(4, 4) is None


@pytest.mark.parametrize("has_key", [False, True])
@pytest.mark.parametrize("pattern", [None, PATTERN, PATTERN[0]])
@pytest.mark.parametrize("causal", [False, True])
def test_masks_are_combined(has_key, pattern, causal):
    if not has_key and pattern is None and not causal:
        return
    expected = np.ones((2, 3, 4), bool)
    for b, i, j in np.ndindex(expected.shape):
        seen = KEY[b, j] or not has_key
        if pattern is not None:
            seen = seen and np.broadcast_to(pattern, expected.shape)[b, i, j]
        expected[b, i, j] = seen and (j <= i or not causal)
    masks = Masks(key=KEY if has_key else None, attention=pattern, causal=causal)
    found = to_numpy(masks.combined(3, 4))
    assert found.dtype == bool and found.ndim == 3
    np.testing.assert_array_equal(np.broadcast_to(found, expected.shape), expected)


def test_masks_may_be_integers():
    found = Masks(key=KEY.astype("int32"), attention=PATTERN.astype("float32"))
    expected = Masks(key=KEY, attention=PATTERN).combined(3, 4)
    np.testing.assert_array_equal(to_numpy(found.combined(3, 4)), to_numpy(expected))


@pytest.mark.parametrize("lengths", [(3, 3), (2, 4), (4, 2), (1, 1)])
def test_a_causal_pattern_is_a_triangle(lengths):
    np.testing.assert_array_equal(
        to_numpy(causal_pattern(*lengths)), np.tri(*lengths, dtype=bool)
    )


def test_bands_are_distances_from_the_row():
    found = to_numpy(near(ops.arange(4), ops.arange(5), -1, 2))
    for i, j in np.ndindex(4, 5):
        assert found[i, j] == (-1 <= j - i <= 2)
    positions = ops.convert_to_tensor(np.array([7], "int32"))
    keys = ops.convert_to_tensor(np.array([4, 5, 6, 7, 8], "int32"))
    found = to_numpy(near(positions, keys, -2, 0))
    assert found.tolist() == [[False, True, True, True, False]]


def test_one_mask_or_the_other_or_both():
    first, second = np.array([True, True, False]), np.array([True, False, True])
    assert both(None, None) is None
    assert both(first, None) is first
    assert both(None, second) is second
    assert to_numpy(both(first, second)).tolist() == [True, False, False]


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_masked_entries_are_zero_even_if_they_are_nan(axis):
    x = np.where(KEY[:, :, None, None], np.float32(2), np.float32("nan"))
    x = np.moveaxis(np.broadcast_to(x, (2, 4, 3, 5)), 1, axis)
    found = to_numpy(zero_masked(ops.convert_to_tensor(x), KEY, axis))
    sums = np.moveaxis(found, axis, 1).sum((2, 3))
    np.testing.assert_array_equal(sums, 30.0 * KEY)
    assert zero_masked(x, None) is x


def test_no_mask_is_all_true():
    sequence = np.zeros((2, 4, 7))
    assert to_numpy(mask_or_ones(None, sequence)).tolist() == [[True] * 4] * 2
    np.testing.assert_array_equal(to_numpy(mask_or_ones(KEY, sequence)), KEY)


def test_patterns_and_causality_are_refused_one_by_one():
    Masks(query=KEY, key=KEY, causal=True).refuse_pattern("It", "for no reason")
    Masks(query=KEY, attention=PATTERN).refuse_causality("It", "for no reason")
    message = "It cannot honour `attention_mask`: for a reason.*Received: "
    with pytest.raises(ValueError, match=message):
        Masks(attention=PATTERN).refuse_pattern("It", "for a reason")
    message = "It cannot honour `use_causal_mask`: for a reason.*Received: "
    with pytest.raises(ValueError, match=message):
        Masks(causal=True).refuse_causality("It", "for a reason")


def test_a_call_without_a_key_has_the_keys_of_its_value():
    query, value, key = np.zeros((2, 3, 5)), np.ones((2, 4, 5)), np.ones((2, 4, 6))
    assert Call(query, value).keys is value
    assert Call(query, value, key).keys is key
    assert Call(query, value).lengths == (3, 4)


def test_a_key_of_its_own_is_refused():
    value = np.ones((2, 4, 5))
    Call(value, value).refuse_key("It")
    Call(value, value, value).refuse_key("It")
    with pytest.raises(ValueError, match="`key` must be .*It has no keys.*Received: "):
        Call(value, value, np.ones((2, 4, 5))).refuse_key("It")


@pytest.mark.parametrize("position", [3, np.int32(3)])
def test_the_position_of_a_step_as_a_list(position):
    assert to_numpy(Step(None, position, {}).positions).tolist() == [3]
