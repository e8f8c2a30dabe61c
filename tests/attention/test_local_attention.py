"""Local attention: its window and its cost."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import LocalAttention
from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.backend import name
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
    layer = LocalAttention(2, **arguments)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    randomize(layer)
    return layer


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, length", [(5, 200), (70, 200), (3, 64), (40, 9)])
def test_blocks_equal_the_masked_matrix(n, length, causal):
    """There are several blocks, longer ones, exactly one, and less than one."""
    layer, x = built(n=n, use_bias=True), inputs(length)
    mask = lengths_mask([length, length // 2], length)
    compute = reference.REFERENCES["LocalAttention"]
    weights = reference.layer_weights(layer)
    expected, _ = compute(
        layer.get_config(), weights, x, x, value_mask=mask, causal=causal
    )
    found = forward(layer, x, x, value_mask=mask, use_causal_mask=causal)
    near(to_numpy(found), expected, 1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_a_far_reach_is_learned_attention(causal):
    x = inputs(12)
    local, full = built(n=12), DotProductAttention(2)
    full.build(x.shape, x.shape)
    full.set_weights(local.get_weights())
    outputs = [forward(layer, x, x, use_causal_mask=causal) for layer in (local, full)]
    near(*map(to_numpy, outputs), 1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_weights_reach_as_far_as_told(causal):
    x = inputs(9)
    _, scores = forward(
        built(n=3), x, x, use_causal_mask=causal, return_attention_scores=True
    )
    distance = np.arange(9)[None, :] - np.arange(9)[:, None]
    near_by = (distance >= -2) & (distance <= (0 if causal else 2))
    found = to_numpy(scores)
    assert (found[:, :, near_by] > 0).all()
    assert not found[:, :, ~near_by].any()
    np.testing.assert_allclose(found.sum(-1), 1.0, rtol=1e-5)


def test_scores_do_not_disturb_dropout():
    x = inputs(9)
    outputs = []
    for wanted in (False, True):
        layer = LocalAttention(2, dropout=0.5, seed=3)
        layer.build(x.shape, x.shape)
        randomize_all_but_seeds(layer)
        found = layer(x, x, training=True, return_attention_scores=wanted)
        outputs.append(to_numpy(found[0] if wanted else found))
    np.testing.assert_array_equal(*outputs)


def randomize_all_but_seeds(layer):
    rng = np.random.default_rng(7)
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(size=weight.shape, scale=WIDTH**-0.5))


def test_the_state_is_a_ring():
    layer, x = built(n=3), inputs(8)
    rows = to_numpy(
        forward(layer, x, x, use_causal_mask=True, return_attention_scores=True)[1]
    )
    state = layer.initial_state(2, 1, 8)
    # On TensorFlow, two numbers are kept as one word.
    entries = (3 * 4 // 2,) if name() == "tensorflow" else (3, 4)
    shapes = {tuple(cache.shape) for cache in state[SHARED].values()}
    assert shapes == {(2, 2, *entries)}
    for t in range(8):
        _, state, scores = layer.step(x[:, t : t + 1], t, state, None, True)
        for j in range(max(t - 2, 0), t + 1):
            near(to_numpy(scores)[:, 0, :, j % 3], rows[:, :, t, j], 1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_memory_grows_linearly(causal):
    check_memory_is_linear(LocalAttention(2), use_causal_mask=causal)


def test_huge_length_runs():
    x = ops.ones((1, 60_000, WIDTH))
    layer = built()
    middle = to_numpy(layer(x, x))[0]
    np.testing.assert_allclose(middle, np.broadcast_to(middle[0], middle.shape), 1e-4)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, None])
def test_bad_reach_is_refused(n):
    with pytest.raises(ValueError, match="`n`.*Received: "):
        LocalAttention(4, n=n)
