"""What layers are given and return, and options of Keras; see also `test_base`."""

import inspect
from types import SimpleNamespace

import keras
import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants.attention.contract import OPTIONS
from keras_attnvariants.attention.contract import check_lengths
from keras_attnvariants.attention.contract import check_memory
from keras_attnvariants.attention.contract import check_returned
from keras_attnvariants.attention.contract import check_scores_wanted
from keras_attnvariants.attention.contract import check_weights


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
