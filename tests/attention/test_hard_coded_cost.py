"""Hard-coded attention: linear memory, constant state, half the parameters."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import HardCodedCrossAttention
from tests.attention.cost import LENGTH
from tests.attention.cost import WIDTH
from tests.attention.cost import check_memory_is_linear
from tests.attention.cost import largest_tensor


@pytest.mark.parametrize(
    "layer, causal",
    [
        (HardCodedAttention(4, offsets=(-1, 1)), False),
        (HardCodedAttention(4, offsets=(-1, 0)), True),
        (HardCodedCrossAttention(4, length_ratio=1.431), False),
        (HardCodedCrossAttention(4, length_ratio=0.963, floor=False), False),
    ],
)
def test_memory_grows_linearly(layer, causal):
    check_memory_is_linear(layer, use_causal_mask=causal)


def test_learned_attention_is_seen_to_be_quadratic():
    """The measurement notices a matrix of all pairs."""
    found = largest_tensor(DotProductAttention(4), LENGTH)
    assert found >= 4 * LENGTH**2


def test_huge_length_runs():
    x = ops.ones((1, 60_000, WIDTH))
    layer = HardCodedAttention(4)
    output = layer(x, x)
    # Far from the borders every position sees the same neighbourhood.
    middle = ops.convert_to_numpy(output[0, 20_000:40_000])
    np.testing.assert_allclose(middle, np.broadcast_to(middle[0], middle.shape), 1e-4)


@pytest.mark.parametrize(
    "offsets, implementation, slots",
    [((-1, 0), "gaussian", 7), ((-1, 0), "conv", 2), ((-1, 0), "index", 1)],
)
def test_ring_buffer_does_not_grow(offsets, implementation, slots):
    layer = HardCodedAttention(4, offsets=offsets, implementation=implementation)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    for max_length in (1, 10, 1000):
        state = keras.tree.flatten(layer.initial_state(2, 3, max_length))
        assert [tuple(x.shape) for x in state] == slots * [(2, 3, WIDTH)]


def test_parameter_count_is_two_squares():
    for cls in (HardCodedAttention, HardCodedCrossAttention):
        layer = cls(num_heads=4)
        layer.build((None, None, WIDTH), (None, None, WIDTH))
        assert layer.count_params() == 2 * WIDTH**2
