"""The residual connection and the feed-forward sub-layer, against their equations."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.models.sublayers import FeedForward
from keras_attnvariants.models.sublayers import Residual
from keras_attnvariants.models.sublayers import layer_norm
from tests.models import tiny

WIDTH = 6


def vectors(seed):
    values = np.random.default_rng(seed).normal(size=(2, 3, WIDTH))
    return ops.convert_to_tensor(values.astype("float32"))


def normalized(x):
    """Layer normalization with its first weights."""
    x = tiny.to_numpy(x)
    deviation = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (x - x.mean(-1, keepdims=True)) / deviation


@pytest.mark.parametrize("normalization", ["pre", "post", None])
def test_a_residual_is_its_equation(normalization):
    residual = Residual(normalization, dropout=0.5)
    residual.build((None, None, WIDTH))
    x, y = vectors(0), vectors(1)
    read = normalized(x) if normalization == "pre" else tiny.to_numpy(x)
    tiny.near(residual.sublayer_input(x), read)
    total = x + y
    total = normalized(total) if normalization == "post" else tiny.to_numpy(total)
    tiny.near(residual.add(x, y), total)
    assert len(residual.weights) == (0 if normalization is None else 2)


def test_a_residual_drops_the_output_of_its_sublayer_only():
    residual = Residual(None, dropout=0.5)
    x, y = vectors(0), ops.ones((2, 3, WIDTH))
    added = tiny.to_numpy(residual.add(x, y, training=True) - x)
    assert set(np.round(added, 5).ravel()) == {0.0, 2.0}


def test_a_feed_forward_sublayer_is_its_equation():
    layer = FeedForward(8, "relu", dropout=0.5)
    layer.build((None, None, WIDTH))
    tiny.randomize(layer)
    w1, b1, w2, b2 = (tiny.to_numpy(weight.value) for weight in layer.weights[:4])
    x = vectors(0)
    expected = np.maximum(tiny.to_numpy(x) @ w1 + b1, 0) @ w2 + b2
    tiny.near(layer(x), expected)
    dropped = tiny.to_numpy(layer(x, training=True))
    assert np.abs(dropped - expected).max() > 1e-2


def test_norms_have_the_epsilon_of_all_models():
    norm = layer_norm("mixed_bfloat16", "here")
    assert (norm.epsilon, norm.name, norm.compute_dtype) == (1e-5, "here", "bfloat16")
