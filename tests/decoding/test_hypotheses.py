"""Length normalization, and the log probability of nothing."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.decoding.hypotheses import IMPOSSIBLE
from keras_attnvariants.decoding.hypotheses import is_possible
from keras_attnvariants.decoding.hypotheses import length_factors


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, -0.5])
def test_factors_are_those_of_the_formula(exponent):
    found = length_factors(40, exponent)
    expected = [(6 / (5 + length)) ** exponent for length in range(41)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == np.float32
    assert found[1] == 1.0


@pytest.mark.parametrize("exponent", [0.6, 3.0])
def test_factors_only_fall(exponent):
    assert (np.diff(length_factors(500, exponent)) <= 0).all()


def test_sums_and_products_with_the_impossible_stay_impossible():
    values = [IMPOSSIBLE, IMPOSSIBLE / 2, 0.01 * IMPOSSIBLE, IMPOSSIBLE + 1e5]
    assert not ops.convert_to_numpy(is_possible(ops.array(values))).any()
    real = ops.array([0.0, -1e5, -1e9])
    assert ops.convert_to_numpy(is_possible(real)).all()
