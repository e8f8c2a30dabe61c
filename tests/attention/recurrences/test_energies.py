"""Accumulated energies: the scan against the reference, and the options."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention import recurrences
from keras_attnvariants.attention.banded import delay
from keras_attnvariants.attention.recurrences import AccumulatedEnergies
from keras_attnvariants.attention.recurrences.energies import neighbours
from tests import reference
from tests.attention.conformance import forward
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy
from tests.attention.recurrences.tools import worked

HEADS, WIDTH, LENGTH, SOURCE_LENGTH = 2, 8, 70, 9


def arrays():
    rng = np.random.default_rng(0)
    query = 3 * normal(rng, 2, LENGTH, WIDTH)
    value = normal(rng, 2, SOURCE_LENGTH, WIDTH)
    return query, value, lengths_mask([SOURCE_LENGTH, 4], SOURCE_LENGTH)


def built(**options):
    layer = RecurrentCrossAttention(HEADS, AccumulatedEnergies(**options))
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    randomize(layer)
    return layer


def smoothing(rule, mask):
    """The matrix `C` `[B, S, S]`, by applying it to the rows of the identity."""
    factors = rule.prepare(None, {"mask": mask})["smoothing"][:, 0]
    rows = ops.cast(mask, "float32")[:, :, None] * ops.eye(mask.shape[1])
    return ops.swapaxes(factors * neighbours(rows, rule.radius), 1, 2)


def expected_of(layer, query, value, mask):
    return reference.REFERENCES["RecurrentCrossAttention"](
        layer.get_config(),
        reference.layer_weights(layer),
        query,
        value,
        value_mask=mask,
    )


@pytest.mark.parametrize("start", ["zeros", "first"])
@pytest.mark.parametrize("rate", [1.0, 0.5, 0.1, 0.001])
def test_long_targets_equal_the_loop(rate, start):
    query, value, mask = arrays()
    layer = built(rate=rate, radius=2, start=start)
    found = forward(layer, query, value, value_mask=mask, return_attention_scores=True)
    output, scores = expected_of(layer, query, value, mask)
    near(to_numpy(found[0]), output, 1e-5)
    near(to_numpy(found[1]), scores, 1e-5)


@pytest.mark.parametrize("rate", [0.5, 0.001])
def test_long_targets_of_dynamic_length(rate):
    if backend.name() != "tensorflow":
        pytest.skip("only TensorFlow has dynamic shapes")
    import tensorflow as tf

    query, value, mask = arrays()
    layer = built(rate=rate)
    floats = tf.TensorSpec((None, None, WIDTH))
    booleans = tf.TensorSpec((None, None), "bool")

    @tf.function(input_signature=[floats, floats, booleans], autograph=False)
    def dynamic(query, value, mask):
        return layer(query, value, value_mask=mask)

    for length in (LENGTH, 3):
        shorter = query[:, :length]
        expected, _ = expected_of(layer, shorter, value, mask)
        near(to_numpy(dynamic(shorter, value, mask)), expected, 1e-5)


def test_renormalised_borders_keep_a_constant():
    """A mean over real positions of equal energies is that energy."""
    mask = ops.convert_to_tensor(lengths_mask([6, 2], 6))
    rows = [
        to_numpy(smoothing(AccumulatedEnergies(0.25, 2, renormalize), mask)).sum(-1)
        for renormalize in (True, False)
    ]
    real = to_numpy(mask)
    np.testing.assert_allclose(rows[0], 0.75 * real, rtol=1e-6)
    window = np.array([[3, 4, 5, 5, 4, 3], [2, 2, 0, 0, 0, 0]])
    np.testing.assert_allclose(rows[1], 0.75 * window / 5, rtol=1e-6)


def test_radius_zero_smooths_over_target_positions_only():
    mask = ops.convert_to_tensor(lengths_mask([3], 3))
    found = to_numpy(smoothing(AccumulatedEnergies(0.25, 0), mask))
    np.testing.assert_allclose(found[0], 0.75 * np.eye(3), rtol=1e-6)


@pytest.mark.parametrize("shift", [1, 2, 4, 8])
def test_delay(shift):
    z = np.arange(12, dtype="float32").reshape(1, 4, 1, 3)
    expected = np.zeros_like(z)
    expected[:, shift:] = z[:, : max(4 - shift, 0)]
    np.testing.assert_array_equal(
        to_numpy(delay(ops.convert_to_tensor(z), shift)), expected
    )


@pytest.mark.parametrize(
    "options",
    [
        {"rate": 0.0},
        {"rate": 1.5},
        {"rate": float("nan")},
        {"radius": -1},
        {"radius": 1.5},
        {"radius": True},
        {"start": "last"},
    ],
)
def test_bad_options_are_refused(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"`{name}`.*Received: "):
        AccumulatedEnergies(**options)


def test_worked_energies():
    """Three source positions, `k = 1`, `lambda = 0.5`."""
    energies = np.array([[2, 0, 0], [0, 0, 4], [0, 0, 0]])
    smoothed = [[1, 0, 0], [1 / 6, 1 / 6, 2], [0.05556, 0.38889, 0.36111]]
    expected = np.exp(smoothed) / np.exp(smoothed).sum(-1, keepdims=True)
    rule = recurrences.AccumulatedEnergies(radius=1)
    for _, scores in worked(rule, {}, energies * 3**0.5, np.eye(3)):
        np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.parametrize("radius", [0, 1, 2, 5, 9])
def test_sums_of_neighbours(radius):
    z = np.random.default_rng(0).normal(size=(2, 1, 7)).astype("float32")
    near_by = np.abs(np.subtract.outer(range(7), range(7))) <= radius
    found = neighbours(ops.convert_to_tensor(z), radius)
    np.testing.assert_allclose(to_numpy(found), z @ near_by, atol=1e-6)
