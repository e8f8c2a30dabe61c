"""Offsets and density, which hard-coded self- and cross-attention share."""

import json

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import HardCodedCrossAttention
from tests import reference
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy
from tests.attention.hard_coded import call
from tests.attention.hard_coded import inputs
from tests.attention.hard_coded import scores_of
from tests.reference import hard_coded as naive


def test_offsets_are_tiled_not_repeated():
    layer = HardCodedAttention(num_heads=4, offsets=(-1, 1))
    x = inputs(5)
    centres = scores_of(layer, x, x)[0, :, 2].argmax(-1)
    assert centres.tolist() == [1, 3, 1, 3]


def test_standard_deviations_are_tiled_too():
    layer = HardCodedAttention(4, offsets=(0,), standard_deviation=(1.0, 2.0))
    x = inputs(5)
    peaks = scores_of(layer, x, x)[0, :, 2, 2]
    np.testing.assert_allclose(peaks, [0.39894, 0.19947] * 2, atol=5e-6)


@pytest.mark.parametrize(
    "dtype, roundoff",
    [
        ("float32", 6.0e-8),
        ("mixed_bfloat16", 3.9e-3),
        ("mixed_float16", 4.9e-4),
    ],
)
@pytest.mark.parametrize("deviation", [0.5, 1.0, 2.5])
def test_radius_loses_less_than_a_rounding_error(dtype, roundoff, deviation):
    layer = HardCodedAttention(4, standard_deviation=deviation, dtype=dtype)
    beyond = range(layer.radius + 1, layer.radius + 100)
    tail = 2 * sum(naive.density(x, deviation) for x in beyond)
    assert tail < roundoff


@pytest.mark.skipif(backend.name() == "jax", reason="float64 is off in JAX")
def test_steps_are_exact_in_float64():
    """The weights are float32 in a full pass and in steps alike."""
    layer = HardCodedAttention(2, offsets=(-1, 0), dtype="float64")
    x = inputs(7).astype("float64")
    layer.build(x.shape, x.shape)
    full = to_numpy(call(layer, x, x, use_causal_mask=True))
    state = layer.initial_state(len(x), 1, 7)
    for t in range(7):
        output, state = layer.step(ops.convert_to_tensor(x[:, t : t + 1]), t, state)
        np.testing.assert_allclose(to_numpy(output)[:, 0], full[:, t], atol=1e-12)


def test_threshold_zeroes_small_weights():
    x = inputs(7)
    layer = HardCodedAttention(1, offsets=(0,), threshold=0.1)
    assert np.count_nonzero(scores_of(layer, x, x)[0, 0, 3]) == 3
    expected, _ = naive.hard_coded_attention(
        layer.get_config(), reference.layer_weights(layer), x, x
    )
    near(to_numpy(call(layer, x, x)), expected, 1e-6)


@pytest.mark.parametrize("cls", [HardCodedAttention, HardCodedCrossAttention])
def test_biases_leak_neither_from_padding_nor_from_borders(cls):
    """Values are zeroed after the projection, bias included; stepping agrees."""
    x = inputs(6)
    mask = lengths_mask([6, 3], 6)
    layer = cls(num_heads=2, offsets=(-1, 0), use_bias=True)
    layer.build(x.shape, x.shape)
    randomize(layer)
    causal = cls is HardCodedAttention
    compute = reference.REFERENCES[cls.__name__]
    expected, _ = compute(
        layer.get_config(),
        reference.layer_weights(layer),
        x,
        x,
        value_mask=mask,
        causal=causal,
    )
    found = to_numpy(call(layer, x, x, value_mask=mask, use_causal_mask=causal))
    near(found, expected, 1e-6)
    memory = None if causal else layer.prepare(ops.convert_to_tensor(x), mask)
    state = layer.initial_state(2, 1, 6, memory=memory)
    for t in range(3):  # the shorter sentence ends here
        output, state = layer.step(x[:, t : t + 1], t, state, memory)
        near(to_numpy(output)[:, 0], expected[:, t], 1e-6)


def test_numpy_arguments_are_kept_as_json():
    own = HardCodedAttention(
        2, offsets=np.array([-1, 1]), standard_deviation=np.array([1.0, 2.0])
    )
    cross = HardCodedCrossAttention(2, length_ratio=np.float32(1.5))
    for layer in (own, cross):
        config = json.loads(json.dumps(layer.get_config()))
        assert type(layer).from_config(config).get_config() == layer.get_config()
