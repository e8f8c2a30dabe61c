"""Concatenated n-grams: the vectors, and what is computed from them."""

import numpy as np
import pytest

from keras_attnvariants.attention import ConcatenatedNgram
from keras_attnvariants.attention import NeuralNgram
from keras_attnvariants.models.blocks import EncoderBlock
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


def built(**arguments):
    layer = ConcatenatedNgram(**{"hidden_dim": 12, **arguments})
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    randomize(layer)
    return layer


def test_worked_vectors():
    """The position, one neighbour, and the means of two windows of two."""
    layer = ConcatenatedNgram(12, n=2, causal=True, far_windows=2, far_size=2)
    vectors = [
        [0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0.5, 0.5, 0, 0],
        [0.5, 0.5, 0, 0, 0, 0],
    ]
    np.testing.assert_array_equal(layer.kernel().T, vectors)
    both = ConcatenatedNgram(12, n=2, far_windows=2, far_size=2)
    mirrored = np.pad(np.flip(vectors[1:], axis=1), ((0, 0), (5, 0)))
    expected = np.concatenate([np.pad(vectors, ((0, 0), (0, 5))), mirrored])
    np.testing.assert_array_equal(both.kernel().T, expected)


@pytest.mark.parametrize("causal", [False, True])
def test_long_sequence_equals_reference(causal):
    """Length 150 spans several blocks, and the reach exceeds one."""
    layer = built(n=3, causal=causal, far_windows=2, far_size=40)
    x, mask = inputs(150), lengths_mask([150, 60], 150)
    expected, _ = reference.REFERENCES["ConcatenatedNgram"](
        layer.get_config(), reference.layer_weights(layer), x, x, value_mask=mask
    )
    found = to_numpy(forward(layer, x, x, value_mask=mask))
    near(found[mask], expected[mask], 1e-5)


def test_without_far_windows_it_is_a_neural_ngram_and_a_sum():
    layer = built(n=3, causal=True, far_windows=0)
    heads = NeuralNgram(
        1, n=3, causal=True, head_input="full", value_dim=12, use_bias=True
    )
    heads.build((None, None, WIDTH), (None, None, WIDTH))
    weights = reference.layer_weights(layer)
    # The position comes first here, and last in the window of the neural n-gram.
    kernel = weights["hidden/kernel"].reshape(1, 3, WIDTH, 12)[:, ::-1]
    heads.ngram_dense.kernel.assign(kernel)
    heads.ngram_dense.bias.assign(weights["hidden/bias"][None])
    heads.output_dense.set_weights(layer.output_dense.get_weights())
    x = inputs(7)
    padded = np.pad(x, ((0, 0), (2, 0), (0, 0)))
    expected = to_numpy(forward(heads, x, x)) + padded[:, :-2] + padded[:, 1:-1]
    near(to_numpy(forward(layer, x, x)), expected, 1e-5)


def test_dropout_leaves_the_sum_of_neighbours_alone():
    layer = built(n=2, causal=True, far_windows=0, dropout=0.5, seed=1)
    x = inputs(50)
    others = np.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    calm, wild = (
        to_numpy(layer(x, x, training=training)) - others for training in (False, True)
    )
    dropped = np.abs(wild) < 1e-5
    assert 0.4 < dropped.mean() < 0.6
    near(wild[~dropped], 2.0 * calm[~dropped], 1e-5)


def test_the_residual_connection_drops_no_more():
    layer = ConcatenatedNgram(12, n=2)
    block = EncoderBlock(layer, None, "post", 0.5)
    block.build((None, None, WIDTH))
    x = inputs(9)
    first, second = (to_numpy(block(x, training=True)) for _ in range(2))
    np.testing.assert_array_equal(first, second)  # two draws would differ
    calm = to_numpy(block(x, training=False))
    # Normalization rounds differently in training.
    np.testing.assert_allclose(first, calm, atol=1e-6)


def test_the_state_reaches_as_far_as_the_windows():
    layer = built(n=3, causal=True, far_windows=2, far_size=4)
    assert layer.initial_state(2, 3, 5)["inputs"].shape == (2, 3, 2 + 8, WIDTH)


@pytest.mark.parametrize("causal", [False, True])
def test_memory_grows_linearly(causal):
    layer = ConcatenatedNgram(12, n=3, causal=causal)
    check_memory_is_linear(layer, use_causal_mask=causal)


def test_config_holds_its_own_arguments_only():
    config = built().get_config()
    assert not {"num_heads", "value_dim"} & set(config)


@pytest.mark.parametrize("argument", ["hidden_dim", "n", "far_windows", "far_size"])
def test_bad_arguments_are_refused(argument):
    with pytest.raises(ValueError, match=f"`{argument}`.*Received: -1"):
        ConcatenatedNgram(**{"hidden_dim": 12, argument: -1})


def test_a_value_of_another_width_is_refused():
    layer = ConcatenatedNgram(12)
    with pytest.raises(ValueError, match="`value`.*Received: widths 6 and 8"):
        layer.build((None, None, 8), (None, None, 6))
