"""Lengths that may be integers or tensors."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend


@pytest.mark.parametrize("length", [0, 4, 5, 6, 100])
def test_integers_stay_integers(length):
    assert backend.at_most(length, 5) == min(length, 5)
    assert backend.at_least(length, 5) == max(length, 5)
    assert isinstance(backend.at_most(length, 5), int)
    assert isinstance(backend.at_least(length, 5), int)


@pytest.mark.parametrize("length", [0, 4, 5, 6, 100])
def test_tensors_are_bounded_too(length):
    tensor = ops.convert_to_tensor(np.int32(length))
    assert int(backend.at_most(tensor, 5)) == min(length, 5)
    assert int(backend.at_least(tensor, 5)) == max(length, 5)
