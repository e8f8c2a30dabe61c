"""Linear attention: a worked example, its blocks and its state."""

import keras
import numpy as np
import pytest

from keras_attnvariants.attention import LinearAttention
from tests import reference
from tests.attention.conformance import forward
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy

WIDTH = 8


def built(**options):
    layer = LinearAttention(2, **options)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    randomize(layer)
    return layer


def test_weights_are_products_of_features():
    """One head of width 1: phi(1) = 2, phi(0) = 1, phi(-1) = 1 / e."""
    layer = LinearAttention(1)
    layer.build((None, None, 1))
    layer.set_weights([np.ones((1, 1))] * 4)
    x = np.array([[[1.0], [0.0], [-1.0]]], "float32")
    output, weights = forward(layer, x, x, return_attention_scores=True)
    row = np.array([2.0, 1.0, np.exp(-1.0)])
    row /= row.sum()
    near(to_numpy(weights)[0, 0], np.tile(row, (3, 1)), 1e-6)
    near(to_numpy(output)[0, :, 0], np.full(3, row[0] - row[2]), 1e-6)


@pytest.mark.parametrize("lengths", [(5, 9), (9, 5), (70, 130), (130, 70)])
def test_a_causal_mask_between_two_sequences(lengths):
    rng = np.random.default_rng(0)
    query, value = (normal(rng, 2, length, WIDTH) for length in lengths)
    layer = built()
    found = forward(layer, query, value, use_causal_mask=True)
    weights = reference.layer_weights(layer)
    naive = reference.REFERENCES["LinearAttention"]
    expected, _ = naive(layer.get_config(), weights, query, value, causal=True)
    near(to_numpy(found), expected, 1e-5)


def test_half_precision_adds_up_in_float32():
    """A sum of 3,000 equal keys in half precision would stop growing."""
    layer = built(dtype="mixed_bfloat16")
    x = np.repeat(normal(np.random.default_rng(1), 1, 1, WIDTH), 3000, axis=1)
    for causal in (False, True):
        output = to_numpy(forward(layer, x, x, use_causal_mask=causal)).astype(
            "float32"
        )
        near(output, np.tile(output[:, :1], (1, 3000, 1)), 1e-2)


def test_the_state_is_one_matrix_for_each_head():
    layer = built(key_dim=3, value_dim=5)
    for length in (1, 1000):
        state = layer.initial_state(2, 4, length)
        assert [tuple(x.shape) for x in keras.tree.flatten(state)] == [(2, 4, 2, 3, 6)]
    memory = layer.prepare(np.ones((2, 7, WIDTH), "float32"))
    assert layer.initial_state(2, 4, 1000, memory) == {}


def test_the_scores_of_a_step_are_the_share_of_its_position():
    layer, x = built(), normal(np.random.default_rng(2), 1, 3, WIDTH)
    _, wanted = layer(x, x, return_attention_scores=True, use_causal_mask=True)
    state = layer.initial_state(1, 1, 3)
    for i in range(3):
        _, state, scores = layer.step(x[:, i : i + 1], i, state, None, True)
        near(to_numpy(scores)[0, 0, :, 0], to_numpy(wanted)[0, :, i, i], 1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_sequences_without_positions(causal):
    x = np.zeros((2, 0, WIDTH), "float32")
    assert built()(x, x, use_causal_mask=causal).shape == x.shape
