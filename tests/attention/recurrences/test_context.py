"""Contexts in training: blocks of rows, by XLA, give the same as a scan."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.attention.recurrences import context
from keras_attnvariants.attention.recurrences.context import PreviousContext

pytestmark = pytest.mark.skipif(
    backend.name() != "tensorflow", reason="JAX scans all rows together"
)

BATCH, HEADS, LENGTH, SOURCE_LENGTH, DIM = 3, 2, 5, 7, 2


def arrays():
    rng = np.random.default_rng(0)
    energies = rng.normal(size=(BATCH, HEADS, LENGTH, SOURCE_LENGTH))
    value, key = rng.normal(size=(2, BATCH, HEADS, SOURCE_LENGTH, DIM))
    mask = np.arange(SOURCE_LENGTH) < np.array([7, 4, 0])[:, None]
    numbers = [x.astype("float32") for x in (energies, value, key)]
    return [*numbers, mask[:, None, None]]


def weights_and_gradient(energies, value, key, mask):
    """The weights and gradient of a training step, with sizes not known beforehand."""
    rule = PreviousContext()
    forward, backward = (
        (first, ops.swapaxes(second, 2, 3))
        for first, second in ((value, key), (key, value))
    )
    weights = rule.scan_weights(energies, mask, forward, training=True)
    given = energies * weights
    return weights, rule.gradient_of_energies(given, (weights, backward))


def in_graph():
    """The outputs of a graph of TensorFlow."""
    import tensorflow as tf

    given = arrays()
    specs = [
        tf.TensorSpec((None, HEADS, None, None), "float32"),
        *[tf.TensorSpec((None, HEADS, None, DIM), "float32")] * 2,
        tf.TensorSpec((None, 1, 1, None), "bool"),
    ]
    graph = tf.function(weights_and_gradient, input_signature=specs)
    return [x.numpy() for x in graph(*map(tf.constant, given))]


@pytest.fixture
def everything_is_long(monkeypatch):
    monkeypatch.setattr(context, "LONG", 1)
    monkeypatch.setattr(context, "MULTIPLE", 4)
    context.compiled.cache_clear()
    yield
    context.compiled.cache_clear()


def test_blocks_give_what_a_scan_gives(everything_is_long):
    found = in_graph()
    assert context.compiled.cache_info().currsize == 2  # both directions
    context.LONG = 100
    for actual, expected in zip(found, in_graph(), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    # Padding has no weight, and neither have rows without a visible source.
    assert not found[0][1, ..., 4:].any()
    assert not found[0][2].any()
