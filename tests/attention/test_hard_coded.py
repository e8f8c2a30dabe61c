"""Hard-coded Gaussian attention: the worked numbers and the equalities of the paper."""

import json

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import HardCodedCrossAttention
from tests import reference
from tests.attention.conformance import forward
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy
from tests.reference import hard_coded as naive

WIDTH = 8
WORKED = {
    (1, False): ["24197 39894 24197", "05399 24197 39894", "00443 05399 24197"],
    (0, True): ["39894 00000 00000", "24197 39894 00000", "05399 24197 39894"],
    (-1, True): ["24197 00000 00000", "39894 24197 00000", "24197 39894 24197"],
}


def inputs(length, batch=2, seed=0):
    return normal(np.random.default_rng(seed), batch, length, WIDTH)


def call(layer, query, value, **kwargs):
    if not layer.built:
        layer.build(query.shape, value.shape)
    return forward(layer, query, value, **kwargs)


def scores_of(layer, *arrays, **kwargs):
    return to_numpy(call(layer, *arrays, return_attention_scores=True, **kwargs)[1])


def with_identity_projections(layer):
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    for weight in layer.weights:
        weight.assign(np.eye(WIDTH))
    return layer


@pytest.mark.parametrize("offset, causal", WORKED)
def test_worked_rows(offset, causal):
    """SPEC 1.1, five digits, of the layer and of the naive reference."""
    rows = [[float(f"0.{d}") for d in row.split()] for row in WORKED[offset, causal]]
    layer = HardCodedAttention(num_heads=1, offsets=(offset,))
    x = inputs(3, batch=1)
    found = scores_of(layer, x, x, use_causal_mask=causal)[0, 0]
    np.testing.assert_allclose(found, rows, atol=5.1e-6)
    weights = reference.layer_weights(layer)
    _, dense = naive.hard_coded_attention(
        layer.get_config(), weights, x, x, causal=causal
    )
    np.testing.assert_allclose(dense[0, 0], rows, atol=5.1e-6)


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


def test_long_sequence_equals_dense_matrix():
    """Length 200 spans several blocks of the banded product."""
    x = inputs(200)
    for offsets in ((-1, 1), (-40, 70)):
        for causal in (False, True):
            layer = HardCodedAttention(num_heads=2, offsets=offsets)
            output = call(layer, x, x, use_causal_mask=causal)
            expected, _ = naive.hard_coded_attention(
                layer.get_config(), reference.layer_weights(layer), x, x, causal=causal
            )
            near(to_numpy(output), expected, 1e-6)


@pytest.mark.parametrize("floor", [True, False])
@pytest.mark.parametrize("ratio", [0.1, 3.7])
def test_long_cross_attention_equals_dense_matrix(ratio, floor):
    """70 target positions span several blocks; far ones look past the source."""
    source, query = inputs(90), inputs(70, seed=1)
    mask = lengths_mask([90, 40], 90)
    layer = HardCodedCrossAttention(
        2, offsets=(-5, 8), length_ratio=ratio, floor=floor, standard_deviation=1.5
    )
    found = to_numpy(call(layer, query, source, value_mask=mask))
    expected, _ = naive.hard_coded_cross_attention(
        layer.get_config(),
        reference.layer_weights(layer),
        query,
        source,
        value_mask=mask,
    )
    near(found, expected, 1e-6)


@pytest.mark.parametrize("implementation", ["gaussian", "conv", "index"])
@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 3])
def test_head_is_a_convolution(implementation, offset):
    """`index` is a convolution with a binary kernel, `conv` one of three taps."""
    x = inputs(9, batch=1)
    kernels = {
        "gaussian": [naive.density(d, 1.0) for d in range(-8, 9)],
        "conv": [0.24197072, 0.39894228, 0.24197072],
        "index": [1.0],
    }
    kernel = np.array(kernels[implementation])
    layer = with_identity_projections(
        HardCodedAttention(1, offsets=(offset,), implementation=implementation)
    )
    found = to_numpy(call(layer, x, x))[0]
    reach = 20
    for channel in range(WIDTH):
        padded = np.pad(x[0, :, channel], reach)
        mixed = np.convolve(padded, kernel, mode="same")
        expected = mixed[reach + offset : reach + offset + 9]
        np.testing.assert_allclose(found[:, channel], expected, atol=1e-6)


def test_index_is_a_shift():
    x = inputs(6)
    layer = with_identity_projections(
        HardCodedAttention(2, offsets=(-1, 2), implementation="index")
    )
    found = to_numpy(call(layer, x, x))
    half = WIDTH // 2
    expected = np.zeros_like(x)
    expected[:, 1:, :half] = x[:, :-1, :half]
    expected[:, :-2, half:] = x[:, 2:, half:]
    np.testing.assert_array_equal(found, expected)


def test_conv_window_is_not_renormalised():
    layer = HardCodedAttention(1, offsets=(0,), implementation="conv")
    x = inputs(7)
    row = scores_of(layer, x, x)[0, 0, 3]
    expected = [0, 0, 0.24197, 0.39894, 0.24197, 0, 0]
    np.testing.assert_allclose(row, expected, atol=5e-6)
    assert row.sum() == pytest.approx(0.88288, abs=5e-6)
    wide = HardCodedAttention(1, offsets=(0,), implementation="conv", window=5)
    assert np.count_nonzero(scores_of(wide, x, x)[0, 0, 3]) == 5


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


def test_cross_with_ratio_one_is_uncausal_self_mixing():
    x, query = inputs(9), inputs(9, seed=1)
    mask = lengths_mask([9, 4], 9)
    own = HardCodedAttention(4, offsets=(-1, 1))
    cross = HardCodedCrossAttention(4, offsets=(-1, 1), length_ratio=1.0)
    mixed = to_numpy(call(own, x, x, value_mask=mask))
    cross.build(query.shape, x.shape)
    cross.set_weights(own.get_weights())
    near(to_numpy(call(cross, query, x, value_mask=mask)), mixed, 1e-6)


@pytest.mark.parametrize("numerator", [290, 963, 1000, 1007, 1431])
def test_centres_are_exact_floors(numerator):
    """0.29 * 100 is 28.999999999999996 in floating point, and means 29."""
    length = 300
    layer = HardCodedCrossAttention(1, offsets=(0,), length_ratio=numerator / 1000)
    query = np.zeros((1, length, WIDTH), "float32")
    source = np.zeros((1, length * 3 // 2, WIDTH), "float32")
    centres = scores_of(layer, query, source)[0, 0].argmax(-1)
    expected = [numerator * i // 1000 for i in range(length)]
    assert centres.tolist() == expected


def test_centres_without_floor_are_fractional():
    layer = HardCodedCrossAttention(1, offsets=(0,), length_ratio=0.75, floor=False)
    row = scores_of(layer, inputs(4), inputs(5))[0, 0, 3]  # centre 2.25
    expected = [naive.density(j - 2.25, 1.0) for j in range(5)]
    np.testing.assert_allclose(row, expected, atol=1e-6)


def test_step_scores_are_the_last_columns_of_the_row():
    x = inputs(12)
    layer = HardCodedAttention(4, offsets=(-1, 0))
    rows = scores_of(layer, x, x, use_causal_mask=True)
    state = layer.initial_state(2, 1, 12)
    for t in range(12):
        _, state, scores = layer.step(
            x[:, t : t + 1], t, state, return_attention_scores=True
        )
        slots = to_numpy(scores)[:, 0]
        row = np.pad(rows[:, :, t, : t + 1], ((0, 0), (0, 0), (8, 0)))[..., -8:]
        near(slots, row, 1e-6)


def test_numpy_arguments_are_kept_as_json():
    own = HardCodedAttention(
        2, offsets=np.array([-1, 1]), standard_deviation=np.array([1.0, 2.0])
    )
    cross = HardCodedCrossAttention(2, length_ratio=np.float32(1.5))
    for layer in (own, cross):
        config = json.loads(json.dumps(layer.get_config()))
        assert type(layer).from_config(config).get_config() == layer.get_config()


@pytest.mark.parametrize(
    "arguments, argument",
    [
        ({"offsets": (-1, 0, 1)}, "offsets"),
        ({"offsets": ()}, "offsets"),
        ({"offsets": (0.5,)}, "offsets"),
        ({"standard_deviation": 0.0}, "standard_deviation"),
        ({"standard_deviation": -1}, "standard_deviation"),
        ({"standard_deviation": float("nan")}, "standard_deviation"),
        ({"implementation": "fft"}, "implementation"),
        ({"window": 4}, "window"),
        ({"window": 0}, "window"),
    ],
)
def test_bad_arguments_are_refused(arguments, argument):
    with pytest.raises(ValueError, match=f"{argument}.*Received: "):
        HardCodedAttention(num_heads=4, **arguments)


@pytest.mark.parametrize("ratio", [0, -1.0, float("nan"), float("inf")])
def test_bad_length_ratio_is_refused(ratio):
    with pytest.raises(ValueError, match="length_ratio.*Received: "):
        HardCodedCrossAttention(num_heads=4, length_ratio=ratio)


def test_cross_attention_refuses_targets_beyond_its_table():
    layer = HardCodedCrossAttention(num_heads=4)
    with pytest.raises(ValueError, match="65536 positions.*Received: "):
        layer(inputs(65537), inputs(4))
