"""Neural n-grams, and the code shared by layers that concatenate neighbours."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import NeuralNgram
from tests import reference
from tests.attention.conformance import forward
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy
from tests.attention.cost import WIDTH
from tests.attention.cost import check_memory_is_linear


def inputs(length, batch=2, seed=0):
    return normal(np.random.default_rng(seed), batch, length, WIDTH)


def built(num_heads=4, **arguments):
    layer = NeuralNgram(num_heads, **arguments)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    randomize(layer)
    return layer


def run(layer, x, **kwargs):
    return to_numpy(forward(layer, x, x, **kwargs))


def weights_of(layer):
    return reference.layer_weights(layer)


@pytest.mark.parametrize("causal", [False, True])
def test_full_heads_are_one_wide_layer(causal):
    many = built(4, n=3, causal=causal, head_input="full")
    one = built(1, n=3, causal=causal)
    one.set_weights(many.get_weights())
    x = inputs(7)
    np.testing.assert_array_equal(run(many, x), run(one, x))


def test_full_heads_are_a_convolution():
    layer = built(n=4, causal=True, head_input="full", output_projection=False)
    convolution = keras.layers.Conv1D(
        WIDTH, 4, padding="causal", activation="relu", use_bias=False
    )
    x = inputs(9)
    convolution.build(x.shape)
    convolution.kernel.assign(weights_of(layer)["ngram/kernel"][0])
    near(run(layer, x), to_numpy(convolution(x)), 1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_heads_see_their_own_slices(causal):
    layer = built(n=3, causal=causal, output_projection=False)
    x = inputs(6)
    before = run(layer, x).reshape(2, 6, 4, -1)
    x[:, 3, WIDTH // 4 : WIDTH // 2] += 2.0
    changed = (run(layer, x).reshape(2, 6, 4, -1) != before).any(axis=(0, 1, 3))
    assert changed.tolist() == [False, True, False, False]


def test_one_gram_without_context_is_a_layer_at_each_position():
    layer = built(n=1, global_context=False)
    x = inputs(5)
    weights = weights_of(layer)
    slices = np.split(x.astype("float64"), 4, axis=-1)
    kernel = weights["ngram/kernel"][:, 0]  # [H, D, D]
    hidden = np.concatenate([s @ w for s, w in zip(slices, kernel, strict=True)], -1)
    expected = np.maximum(hidden, 0.0) @ weights["output/kernel"]
    near(run(layer, x), expected, 1e-6)


def test_padding_is_not_the_largest_of_negative_numbers():
    """Zeros at padded positions would win against them."""
    layer = built(n=2)
    x = -np.abs(inputs(6)) - 0.5
    mask = lengths_mask([6, 3], 6)
    padded = run(layer, np.where(mask[..., None], x, 0.0), value_mask=mask)
    near(padded[1, :3], run(layer, x[1:, :3])[0], 1e-6)


@pytest.mark.parametrize("global_context, reach", [(True, 6), (False, 2)])
def test_the_global_context_reaches_everywhere(global_context, reach):
    layer = built(n=2, global_context=global_context)
    x = inputs(6, batch=1)
    before = run(layer, x)
    x[:, 0] = 9.0
    changed = np.abs(run(layer, x) - before).max(axis=(0, 2)) > 1e-3
    assert changed.tolist() == [True] * reach + [False] * (6 - reach)


def test_a_batch_may_be_empty():
    layer = NeuralNgram(4, global_context=True)
    for shape in ((0, 5, WIDTH), (2, 0, WIDTH)):
        inputs = np.zeros(shape, "float32")
        assert layer(inputs, inputs).shape == shape


@pytest.mark.parametrize("causal", [False, True])
def test_memory_grows_linearly(causal):
    check_memory_is_linear(NeuralNgram(2, causal=causal), use_causal_mask=causal)


def test_initial_heads_differ_and_are_as_large_as_one_matrix():
    layer = NeuralNgram(4, n=3, kernel_initializer=keras.initializers.GlorotUniform(3))
    layer.build((None, None, 64))
    kernel = weights_of(layer)["ngram/kernel"]  # [4, 5, 16, 16]
    limit = np.sqrt(6 / (5 * 16 + 64))
    assert 0.99 * limit < np.abs(kernel).max() <= limit * (1 + 1e-6)
    assert len({head.tobytes() for head in kernel}) == 4


# Millions of parameters with 8 layers, n = 5, V = 32,768, f = 2,048, and with 9 layers,
# V = 10,000, f = 1,024: all but self-attention, with biases and tied embeddings.
REST = {
    "wmt": 32_768 * 512 + 8 * (2 * 2_099_712 + 1_050_624 + 5 * 1_024),
    "iwslt": 10_000 * 512 + 9 * (2 * 1_050_112 + 1_050_624 + 5 * 1_024),
}
LAYERS = {"wmt": 8, "iwslt": 9}


def parameters(**arguments):
    layer = NeuralNgram(8, use_bias=True, **arguments)
    layer.build((None, None, 512))
    return layer.count_params()


@pytest.mark.parametrize("data, published", [("wmt", 61.71), ("iwslt", 36.78)])
def test_the_matched_form_has_the_published_size(data, published):
    without = {"output_projection": False}
    both = parameters(n=3, **without) + parameters(n=5, causal=True, **without)
    total = REST[data] + LAYERS[data] * both
    assert round(total / 1e6, 2) == published


@pytest.mark.parametrize(
    "total, arguments",
    [
        (62.76, {"output_projection": False}),
        (66.96, {}),
        (90.28, {"output_projection": False, "head_input": "full"}),
        (94.49, {"head_input": "full"}),
    ],
)
def test_other_readings_have_other_sizes(total, arguments):
    both = parameters(**arguments) + parameters(causal=True, **arguments)
    assert round((REST["wmt"] + 8 * both) / 1e6, 2) == total


@pytest.mark.parametrize(
    "arguments, argument",
    [
        ({"n": 0}, "n"),
        ({"head_input": "half"}, "head_input"),
        ({"causal": True, "global_context": True}, "global_context"),
    ],
)
def test_bad_arguments_are_refused(arguments, argument):
    with pytest.raises(ValueError, match=f"`{argument}`.*Received: "):
        NeuralNgram(4, **arguments)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"value_dim": 3, "output_projection": False}, "`output_projection`"),
        ({"num_heads": 3}, "`num_heads` must divide.*unless `head_input` is 'full'"),
        ({"num_heads": 3, "value_dim": 4}, "`num_heads` must divide.*`head_input`"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"{message}.*Received: "):
        built(**arguments)


def test_causal_layers_need_no_causal_mask():
    layer = built(n=3, causal=True)
    x = inputs(6)
    before = run(layer, x)
    x[:, 4:] += 3.0
    after = run(layer, x)
    np.testing.assert_array_equal(after[:, :4], before[:, :4])
    assert np.abs(after[:, 4] - before[:, 4]).max() > 1e-2


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_state_holds_one_input_less_than_the_window(n):
    layer = built(n=n, causal=True)
    for max_length in (1, 1000):
        state = layer.initial_state(2, 3, max_length)
        assert state["inputs"].shape == (2, 3, n - 1, WIDTH)


def test_an_encoder_layer_does_not_decode():
    with pytest.raises(ValueError, match="`causal` must be True.*causal=False"):
        built().initial_state(1, 1, 5)


def test_a_step_has_no_scores():
    layer = built(causal=True)
    state = layer.initial_state(2, 1, 5)
    with pytest.raises(ValueError, match="no attention weights.*Received: "):
        layer.step(ops.ones((2, 1, WIDTH)), 0, state, None, True)
