"""Options of Keras' attention are accepted, or refused with a reason."""

import inspect

import keras
import pytest

import keras_attnvariants as kav
from keras_attnvariants.attention.keras_options import OPTIONS

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
