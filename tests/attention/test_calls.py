"""Calls and their masks, alone and together, and options of Keras."""

import inspect
import re
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

import keras_attnvariants as kav
from keras_attnvariants.attention import Call
from keras_attnvariants.attention import Masks
from keras_attnvariants.attention import Step
from keras_attnvariants.attention.calls import OPTIONS
from keras_attnvariants.attention.calls import causal_pattern
from keras_attnvariants.attention.calls import check_inputs
from keras_attnvariants.attention.calls import check_memory
from keras_attnvariants.attention.calls import check_scores_wanted
from keras_attnvariants.attention.calls import combine_masks
from keras_attnvariants.attention.calls import mask_or_ones
from keras_attnvariants.attention.calls import window_pattern
from keras_attnvariants.attention.calls import zero_masked
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import to_numpy

KEY = lengths_mask([4, 2], 4)  # [2, 4]
PATTERN = np.random.default_rng(0).random((2, 3, 4)) < 0.5


def test_no_masks_combine_to_none():
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
    found = to_numpy(window_pattern(ops.arange(4), ops.arange(5), -1, 2))
    for i, j in np.ndindex(4, 5):
        assert found[i, j] == (-1 <= j - i <= 2)
    positions = ops.convert_to_tensor(np.array([7], "int32"))
    keys = ops.convert_to_tensor(np.array([4, 5, 6, 7, 8], "int32"))
    found = to_numpy(window_pattern(positions, keys, -2, 0))
    assert found.tolist() == [[False, True, True, True, False]]


def test_one_mask_or_the_other_or_both():
    first, second = np.array([True, True, False]), np.array([True, False, True])
    assert combine_masks(None, None) is None
    assert combine_masks(first, None) is first
    assert combine_masks(None, second) is second
    assert to_numpy(combine_masks(first, second)).tolist() == [True, False, False]


def test_weights_of_masked_keys_are_zero():
    weights = ops.ones((3, 4, 4))  # [H, T, S]
    assert Masks().applied_to(weights) is weights
    found = to_numpy(Masks(key=KEY, causal=True).applied_to(weights))
    expected = np.tril(np.ones((4, 4))) * KEY[:, None, None]
    np.testing.assert_array_equal(found, np.repeat(expected, 3, axis=1))


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


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("key", {"key": np.ones((2, 4, 5))}),
        ("attention_mask", {"mask": PATTERN}),
        ("use_causal_mask", {"causal": True}),
    ],
)
def test_arguments_are_refused_one_by_one(argument, given):
    value = np.ones((2, 4, 5))
    call = {"query": value, "value": value}
    message = f"cannot honour `{argument}`: for a reason.*Received: {argument}="
    for others in (call, call | {"key": value}):
        check_inputs(layer(refused={argument: "for a reason"}), **others)
    check_inputs(layer(refused={}), **call | given)
    with pytest.raises(ValueError, match=message) as error:
        refusing = layer(refused={argument: "for a reason"})
        check_inputs(refusing, **call | given)
    assert len(str(error.value)) < 120


@pytest.mark.parametrize("name", ["HardCodedAttention", "NeuralNgram"])
def test_functional_models_refuse_what_calls_refuse(name):
    attention, x = getattr(kav, name)(num_heads=2), keras.KerasTensor((2, 4, 6))
    attention(x, x, x)
    with pytest.raises(ValueError, match=f"{name} cannot honour `key`"):
        attention(x, x, keras.KerasTensor((2, 4, 6)))


def test_functional_models_refuse_masks_by_name_and_by_position():
    x, mask = keras.KerasTensor((2, 4, 6)), keras.KerasTensor((2, 4, 4), "bool")
    with pytest.raises(ValueError, match="cannot honour `attention_mask`"):
        kav.LinearAttention(2)(x, x, attention_mask=mask)
    with pytest.raises(ValueError, match="cannot honour `attention_mask`"):
        kav.LinearAttention(2)(x, x, None, None, None, None, mask)
    with pytest.raises(ValueError, match="cannot honour `use_causal_mask`"):
        kav.NeuralNgram(2)(x, x, use_causal_mask=True)


def test_a_call_without_a_key_has_the_keys_of_its_value():
    query, value, key = np.zeros((2, 3, 5)), np.ones((2, 4, 5)), np.ones((2, 4, 6))
    assert Call(query, value).keys is value
    assert Call(query, value, key).keys is key
    assert Call(query, value).lengths == (3, 4)


@pytest.mark.parametrize("position", [3, np.int32(3)])
def test_the_position_of_a_step_as_a_list(position):
    assert to_numpy(Step(None, position, {}).positions).tolist() == [3]


def layer(*roles, **attributes):
    attributes = {"has_scores": True, "refused": {}} | attributes
    return SimpleNamespace(roles=frozenset(roles), **attributes)


def sequence(length):
    return keras.KerasTensor((2, length, 3))


@pytest.mark.parametrize("lengths", [(4, 4), (None, 5), (4, None)])
def test_lengths_that_may_be_equal_pass(lengths):
    check_inputs(layer("encoder"), *map(sequence, lengths))


def test_two_lengths_are_for_cross_attention():
    check_inputs(layer("encoder", "cross"), sequence(4), sequence(5))
    with pytest.raises(ValueError, match=r"the same length.*Received: lengths \(4, 5"):
        check_inputs(layer("encoder", "decoder"), sequence(4), sequence(5))


@pytest.mark.parametrize("shape", [(5,), (2, 1, 4, 5), (2, 3, 4, 5)])
def test_masks_for_single_heads_are_refused(shape):
    call = {"layer": layer("cross"), "query": sequence(4), "value": sequence(5)}
    for ranks in ((4, 5), (1, 4, 5), (2, 4, 5)):
        check_inputs(**call, mask=keras.KerasTensor(ranks, dtype="bool"))
    with pytest.raises(ValueError, match=re.escape(f"with shape {shape}")):
        check_inputs(**call, mask=keras.KerasTensor(shape, dtype="bool"))


def test_layers_check_masks_in_calls_and_in_functional_models():
    layer = kav.DotProductAttention(num_heads=2)
    x, mask = keras.KerasTensor((2, 4, 6)), keras.KerasTensor((2, 2, 4, 4), "bool")
    with pytest.raises(ValueError, match="all heads share it"):
        layer(x, x, attention_mask=mask)
    with pytest.raises(ValueError, match="all heads share it"):
        layer(x, x, None, None, None, None, mask)
    x, mask = ops.zeros(x.shape), ops.ones(mask.shape, "bool")
    with pytest.raises(ValueError, match="all heads share it"):
        layer(x, x, attention_mask=mask)


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


LAYERS = {
    name: (variant.cls, variant.examples[0])
    for name, variant in kav.attention.variants().items()
}
PARAMETERS = inspect.signature(keras.layers.MultiHeadAttention.__init__).parameters
DEFAULTS = {
    name: parameter.default
    for name, parameter in PARAMETERS.items()
    if name not in ("self", "kwargs", "num_heads")
}
OTHERS = {
    "num_heads": 4,
    "output_shape": 8,
    "attention_axes": (1,),
    "sliding_window": 3,
    "flash_attention": True,
    "use_gate": True,
    "key_dim": 4,
    "value_dim": 4,
    "dropout": 0.1,
    "seed": 3,
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_defaults_of_keras_are_accepted(name):
    cls, arguments = LAYERS[name]
    defaults = {**DEFAULTS, "key_dim": None}
    layer = cls(**{**defaults, **arguments})
    assert type(layer).from_config(layer.get_config()).get_config()


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", LAYERS)
def test_other_values_are_honoured_or_refused_by_name(name, option):
    cls, arguments = LAYERS[name]
    value = OTHERS[option]
    try:
        layer = cls(**{**arguments, option: value})
    except ValueError as error:
        message = str(error)
        assert message.startswith(f"`{option}` must be {OPTIONS[option][0]!r} for ")
        assert message.endswith(f"Received: {option}={value!r}")
    else:
        assert layer.get_config()[option] == value
