"""Projections, heads and the softmax, seen in dot-product attention."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import ConcatenatedNgram
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import NeuralNgram
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention.multi_head import PerHeadInitializer
from keras_attnvariants.attention.multi_head import heads_first
from keras_attnvariants.attention.multi_head import merge_heads
from keras_attnvariants.attention.multi_head import split_heads
from tests.attention.conformance import to_numpy

HEADS, WIDTH = 4, 16
# Every option of the projections of Keras, with a value that is not its default.
OPTIONS = {
    "kernel_initializer": keras.initializers.Constant(3.0),
    "output_initializer": keras.initializers.Constant(4.0),
    "bias_initializer": keras.initializers.Constant(5.0),
    "kernel_regularizer": keras.regularizers.L2(0.01),
    "bias_regularizer": keras.regularizers.L1(0.1),
    "kernel_constraint": keras.constraints.MaxNorm(2.0),
    "bias_constraint": keras.constraints.NonNeg(),
}


def built(cls=DotProductAttention, *arguments, **options):
    layer = cls(*arguments, **options)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    return layer


def kinds(layer, name):
    """The weights of this name, kernels or biases, that the options apply to."""
    return [weight for weight in layer.trainable_weights if weight.name == name]


MAKERS = [
    (DotProductAttention, {"num_heads": HEADS}),
    (HardCodedAttention, {"num_heads": HEADS}),
    (NeuralNgram, {"num_heads": HEADS}),
    (ConcatenatedNgram, {"hidden_dim": 8, "n": 2}),
    (PhraseAttention, {"num_heads": HEADS}),
    (RecurrentCrossAttention, {"num_heads": HEADS, "recurrence": "expanded_full"}),
]


@pytest.mark.parametrize("cls, arguments", MAKERS)
def test_options_of_projections_are_honoured(cls, arguments):
    layer = built(cls, **arguments, **OPTIONS, use_bias=True)
    for name in ("kernel", "bias"):
        for weight in kinds(layer, name):
            is_output = "output" in weight.path.split("/")[-2]
            value = 5.0 if name == "bias" else 4.0 if is_output else 3.0
            assert (to_numpy(weight.value) == value).all(), weight.path
            assert weight.regularizer is OPTIONS[f"{name}_regularizer"], weight.path
            assert weight.constraint is OPTIONS[f"{name}_constraint"], weight.path
    kernels = sum(float(np.sum(to_numpy(k.value) ** 2)) for k in kinds(layer, "kernel"))
    biases = sum(float(np.sum(to_numpy(b.value))) for b in kinds(layer, "bias"))
    losses = sum(float(loss) for loss in layer.losses)
    assert losses == pytest.approx(0.01 * kernels + 0.1 * biases, rel=1e-5)


@pytest.mark.parametrize("cls, arguments", MAKERS)
def test_options_of_projections_are_saved(cls, arguments):
    layer = cls(**arguments, **OPTIONS, use_bias=True)
    config = json.loads(json.dumps(layer.get_config()))
    twin = cls.from_config(config)
    for name, option in OPTIONS.items():
        assert type(getattr(twin, name)) is type(option)
        assert getattr(twin, name).get_config() == option.get_config()


def test_options_may_be_names():
    layer = DotProductAttention(
        HEADS, kernel_initializer="he_normal", kernel_regularizer="l2"
    )
    # The output has the initializer of the inputs unless it is given its own.
    assert type(layer.output_initializer) is keras.initializers.HeNormal
    assert type(layer.kernel_regularizer) is keras.regularizers.L2


def test_heads_are_consecutive_columns():
    x = np.arange(2 * 12).reshape(1, 2, 12)
    heads = to_numpy(split_heads(ops.convert_to_tensor(x), 3))
    np.testing.assert_array_equal(heads[0, 1], x[0, 1].reshape(3, 4))
    first = to_numpy(heads_first(ops.convert_to_tensor(x), 3))
    np.testing.assert_array_equal(first, heads.swapaxes(1, 2))
    np.testing.assert_array_equal(
        to_numpy(merge_heads(ops.convert_to_tensor(heads))), x
    )


def test_averages_of_values():
    """Two keys of equal energy, one of them masked for the second query."""
    layer = built(num_heads=1)
    values = ops.convert_to_tensor(np.array([2.0, 4.0], "float32").reshape(1, 2, 1, 1))
    mask = ops.convert_to_tensor(np.array([[[True, True], [True, False], [False] * 2]]))
    queries, keys = ops.zeros((1, 3, 1, 1)), ops.zeros((1, 2, 1, 1))
    context, weights = layer.attend_heads(queries, keys, values, mask)
    np.testing.assert_array_equal(to_numpy(context).ravel(), [3.0, 2.0, 0.0])
    np.testing.assert_array_equal(to_numpy(weights)[0, 0], [[0.5, 0.5], [1, 0], [0, 0]])


def test_kernels_of_heads_are_drawn_as_one_matrix():
    constant = np.arange(5 * 6, dtype="float32").reshape(5, 6)

    def whole(shape, dtype=None):
        assert shape == (5, 6)
        return ops.convert_to_tensor(constant)

    rows = PerHeadInitializer(whole, before=3)
    np.testing.assert_array_equal(to_numpy(rows((2, 6))), constant[3:])
    heads = constant[3:].reshape(2, 3, 2).swapaxes(0, 1)
    np.testing.assert_array_equal(to_numpy(rows((3, 2, 2))), heads)
    twin = PerHeadInitializer("ones", before=4).clone()
    assert (type(twin.initializer), twin.before) == (keras.initializers.Ones, 4)


def test_initializers_are_independent_streams():
    layer = DotProductAttention(HEADS, kernel_initializer=keras.initializers.Zeros())
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    assert not any(to_numpy(w.value + 0).any() for w in layer.weights)
    layer = DotProductAttention(HEADS, output_initializer="ones")
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    kernels = [
        to_numpy(dense.kernel + 0)
        for dense in (layer.query_dense, layer.key_dense, layer.value_dense)
    ]
    assert (to_numpy(layer.output_dense.kernel + 0) == 1).all()
    for first, second in zip(kernels, kernels[1:], strict=False):
        assert np.abs(first - second).max() > 1e-3


def test_the_width_of_values_does_not_give_that_of_keys():
    layer = DotProductAttention(num_heads=3, value_dim=4)
    with pytest.raises(ValueError, match="unless `key_dim` is given.*Received: num_"):
        layer.build((None, None, 16))
