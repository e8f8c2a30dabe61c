"""Hard-coded cross-attention: the places of its windows, and refused arguments."""

import numpy as np
import pytest

from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import HardCodedCrossAttention
from tests import reference
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import to_numpy
from tests.attention.hard_coded import WIDTH
from tests.attention.hard_coded import call
from tests.attention.hard_coded import inputs
from tests.attention.hard_coded import scores_of
from tests.reference import hard_coded as naive


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


def test_cross_with_ratio_one_is_uncausal_self_mixing():
    x, query = inputs(9), inputs(9, seed=1)
    mask = lengths_mask([9, 4], 9)
    own = HardCodedAttention(4, offsets=(-1, 1))
    cross = HardCodedCrossAttention(4, offsets=(-1, 1), length_ratio=1.0)
    mixed = to_numpy(call(own, x, x, value_mask=mask))
    cross.build(query.shape, x.shape)
    cross.set_weights(own.get_weights())
    near(to_numpy(call(cross, query, x, value_mask=mask)), mixed, 1e-6)


def test_a_source_without_positions_gives_zeros():
    layer = HardCodedCrossAttention(4, offsets=(-1, 1), use_bias=False)
    assert not to_numpy(call(layer, inputs(3), inputs(0))).any()


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


@pytest.mark.parametrize("ratio", [0, -1.0, float("nan"), float("inf")])
def test_bad_length_ratio_is_refused(ratio):
    with pytest.raises(ValueError, match="length_ratio.*Received: "):
        HardCodedCrossAttention(num_heads=4, length_ratio=ratio)


def test_cross_attention_refuses_targets_beyond_its_table():
    layer = HardCodedCrossAttention(num_heads=4)
    with pytest.raises(ValueError, match="65536 positions.*Received: "):
        layer(inputs(65537), inputs(4))
