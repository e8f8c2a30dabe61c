"""What the layers share that concatenate neighbours, seen in one of them."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import NeuralNgram
from tests.attention.conformance import forward
from tests.attention.conformance import normal
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy
from tests.attention.cost import WIDTH


def inputs(length, batch=2, seed=0):
    return normal(np.random.default_rng(seed), batch, length, WIDTH)


def built(num_heads=4, **arguments):
    layer = NeuralNgram(num_heads, **arguments)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    randomize(layer)
    return layer


def run(layer, x, **kwargs):
    return to_numpy(forward(layer, x, x, **kwargs))


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
