"""A variant in place of attention: outputs, weights, training, saving, refusals."""

import keras
import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants import backend
from keras_attnvariants.models.swapping import SwappedLayer
from tests.models.tiny import to_numpy

HEADS, HEAD, WIDTH, TOKENS, LENGTH = 4, 3, 16, 20, 7
# On JAX, attention of Keras fails unless values are as wide as keys.
VALUE = HEAD if backend.name() == "jax" else 5
IDS = np.random.default_rng(0).integers(0, TOKENS, (3, LENGTH)).astype("int32")


def attention(**options):
    return keras.layers.MultiHeadAttention(HEADS, HEAD, **options)


def functional(layer, **call):
    """A functional model with one layer of self-attention."""
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(TOKENS, WIDTH, mask_zero=True)(ids)
    y = layer(x, x, **call)
    x = keras.layers.LayerNormalization()(x + y)
    model = keras.Model(ids, keras.layers.Dense(2, name="head")(x))
    randomize(model)
    return model


def randomize(model):
    """Draws all weights, biases too, so that a lost one is noticed."""
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(rng.normal(size=weight.shape))


@pytest.mark.parametrize("call", [{}, {"use_causal_mask": True}])
@pytest.mark.parametrize("options", [{}, {"value_dim": VALUE}, {"use_bias": False}])
def test_the_same_attention_gives_the_same_outputs(options, call):
    model = functional(attention(name="mixer", **options), **call)
    bias = options.get("use_bias", True)
    swapped, [layer] = kav.swap_attention(
        model, kav.DotProductAttention(HEADS, use_bias=bias)
    )
    assert type(swapped.get_layer("mixer")) is kav.DotProductAttention
    real = IDS != 0  # Keras attends uniformly from padding
    np.testing.assert_allclose(
        to_numpy(swapped(IDS))[real], to_numpy(model(IDS))[real], atol=1e-5
    )
    assert layer.left == layer.new == ()
    assert len(layer.taken) == (8 if bias else 4)


def test_a_fixed_distance_trains_and_is_saved_and_loaded(tmp_path):
    model = functional(attention())
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = model.get_weights()
    variant = kav.HardCodedAttention(HEADS, offsets=(-1, 1))
    swapped, [layer] = kav.swap_attention(model, variant)
    assert layer.taken == ("value/kernel", "attention_output/kernel")
    assert set(layer.left) == {
        *("query/kernel", "query/bias", "key/kernel", "key/bias"),
        *("value/bias", "attention_output/bias"),
    }
    assert layer.new == ()
    assert f"{HEADS * HEAD}" in str(swapped.get_layer(layer.name).value_dense.units)
    labels = np.zeros(IDS.shape, "int32")
    swapped.jit_compile = False
    swapped.fit(IDS, labels, epochs=1, verbose=0)
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)  # the old model is as it was
    swapped.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(to_numpy(loaded(IDS)), to_numpy(swapped(IDS)))


def test_layers_within_models_and_of_ours_are_swapped_by_name():
    x = keras.Input((LENGTH, WIDTH))
    block = keras.Model(x, keras.layers.Add()([x, attention(name="inner")(x, x)]))
    learned = kav.DotProductAttention(HEADS, name="outer")
    y = keras.Input((LENGTH, WIDTH))
    z = keras.Sequential([keras.Input((LENGTH, WIDTH)), block])(y)
    model = keras.Model(y, learned(z, z))
    randomize(model)
    variant = kav.AlibiAttention(HEADS)
    try:
        swapped, layers = kav.swap_attention(model, variant)
    except ValueError as error:
        assert keras.__version__ < "3.13" and "does not reach" in str(error)
        return
    assert [layer.name for layer in layers] == ["inner", "outer"]
    assert layers[1].before == "DotProductAttention"
    assert layers[1].left == layers[1].new == ()
    swapped, [layer] = kav.swap_attention(model, variant, names=["outer"])
    assert layer.name == "outer"
    assert "MultiHeadAttention" in str(swapped.layers[1].layers[0].layers)
    inputs = np.random.default_rng(2).normal(size=(2, LENGTH, WIDTH)).astype("float32")
    old, new = (m.layers[1](inputs) for m in (model, swapped))
    np.testing.assert_array_equal(to_numpy(old), to_numpy(new))


def test_layers_of_one_name_in_several_models_are_all_swapped():
    def block():
        x = keras.Input((LENGTH, WIDTH))
        return keras.Model(x, attention(name="inner")(x, x))

    x = keras.Input((LENGTH, WIDTH))
    model = keras.Model(x, block()(block()(x)))
    try:
        for names in (None, ["inner"]):
            swapped, _ = kav.swap_attention(model, kav.NeuralNgram(HEADS), names=names)
            layers = [inner.get_layer("inner") for inner in swapped.layers[1:]]
            assert [type(layer) for layer in layers] == [kav.NeuralNgram] * 2
    except ValueError as error:
        assert keras.__version__ < "3.13" and "does not reach" in str(error)


def test_a_sequential_model_of_blocks():
    x = keras.Input((LENGTH, WIDTH))
    block = keras.Model(x, attention()(x, x))
    model = keras.Sequential([keras.Input((LENGTH, WIDTH)), block])
    swapped, [layer] = kav.swap_attention(
        model, kav.DotProductAttention(HEADS, use_bias=True)
    )
    inputs = np.random.default_rng(2).normal(size=(2, LENGTH, WIDTH)).astype("float32")
    np.testing.assert_allclose(
        to_numpy(swapped(inputs)), to_numpy(model(inputs)), atol=1e-5
    )


def test_other_heads_take_nothing_over():
    _, [layer] = kav.swap_attention(functional(attention()), kav.AlibiAttention(2))
    assert layer.taken == ()
    assert len(layer.new) == 4


def test_a_report_is_a_line():
    layer = SwappedLayer("mixer", "A", "B", ("value/kernel",), (), ("query/kernel",))
    expected = "mixer: B for A; taken: value/kernel; left: none; new: query/kernel"
    assert str(layer) == expected


def cross_model():
    x, y = keras.Input((LENGTH, WIDTH)), keras.Input((LENGTH, WIDTH))
    return keras.Model([x, y], attention()(x, y))


def key_model():
    x, y = keras.Input((LENGTH, WIDTH)), keras.Input((LENGTH, WIDTH))
    return keras.Model([x, y], attention()(x, x, y))


HARD_CODED = kav.HardCodedAttention(HEADS)


@pytest.mark.parametrize(
    ("make", "layer", "message"),
    [
        (cross_model, HARD_CODED, "HardCodedAttention cannot serve as cross"),
        (
            lambda: functional(attention(), use_causal_mask=True),
            kav.NeuralNgram(HEADS),
            "NeuralNgram cannot serve as decoder.*With causal=True it can",
        ),
        (key_model, HARD_CODED, "HardCodedAttention cannot honour `key`"),
        (key_model, kav.NeuralNgram(HEADS), "NeuralNgram cannot honour `key`"),
        (
            lambda: keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]),
            HARD_CODED,
            "`model` must have attention layers",
        ),
        (
            lambda: keras.Sequential([keras.layers.Dense(2)]),
            HARD_CODED,
            "`model` must be built",
        ),
        (
            lambda: kav.Seq2SeqLSTM(20, 4, 4),
            HARD_CODED,
            "`model` must be a functional.*Received: Seq2SeqLSTM",
        ),
    ],
)
def test_layers_that_cannot_be_swapped_are_refused(make, layer, message):
    with pytest.raises(ValueError, match=message):
        kav.swap_attention(make(), layer)


def test_another_width_of_the_output_is_refused():
    x = keras.Input((LENGTH, WIDTH))
    model = keras.Model(x, attention(output_shape=5)(x, x))
    with pytest.raises(ValueError, match=r"`output_shape` of the layer.*\(5,\)"):
        kav.swap_attention(model, HARD_CODED)


def test_names_and_layers_are_checked():
    model = functional(attention(name="mixer"))
    with pytest.raises(ValueError, match=r"`names`.*\(mixer\).*'other'"):
        kav.swap_attention(model, HARD_CODED, names=["other"])
    with pytest.raises(TypeError, match="`layer` must be an attention layer"):
        kav.swap_attention(model, keras.layers.Dense(3))
