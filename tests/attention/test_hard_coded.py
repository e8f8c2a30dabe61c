"""Hard-coded Gaussian attention: the worked numbers and the equalities of the paper."""

import numpy as np
import pytest

from keras_attnvariants.attention import HardCodedAttention
from tests import reference
from tests.attention.conformance import near
from tests.attention.conformance import to_numpy
from tests.attention.hard_coded import WIDTH
from tests.attention.hard_coded import call
from tests.attention.hard_coded import inputs
from tests.attention.hard_coded import scores_of
from tests.reference import hard_coded as naive

WORKED = {
    (1, False): ["24197 39894 24197", "05399 24197 39894", "00443 05399 24197"],
    (0, True): ["39894 00000 00000", "24197 39894 00000", "05399 24197 39894"],
    (-1, True): ["24197 00000 00000", "39894 24197 00000", "24197 39894 24197"],
}


def with_identity_projections(layer):
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    for weight in layer.weights:
        weight.assign(np.eye(WIDTH))
    return layer


@pytest.mark.parametrize("offset, causal", WORKED)
def test_worked_rows(offset, causal):
    """Weights computed by hand to five digits: the layer and the naive reference."""
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
