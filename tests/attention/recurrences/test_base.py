"""Functions that recurrences share: products and the scan."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention.recurrences.base import Recurrence
from keras_attnvariants.attention.recurrences.base import average
from keras_attnvariants.attention.recurrences.base import products
from keras_attnvariants.attention.recurrences.base import scan_time
from tests.attention.conformance import to_numpy


def test_products_and_averages():
    """One head of width 2, two keys."""
    q = ops.convert_to_tensor(np.array([1.0, 2.0], "float32").reshape(1, 1, 1, 2))
    keys = ops.convert_to_tensor(
        np.array([[1.0, 0.0], [3.0, 1.0]], "float32").reshape(1, 1, 2, 2)
    )
    weights = products(q, keys)
    np.testing.assert_array_equal(to_numpy(weights), [[[[1.0, 5.0]]]])
    np.testing.assert_array_equal(to_numpy(average(weights, keys)), [[[[16.0, 5.0]]]])


def test_products_are_float32_in_half_precision():
    half = ops.ones((1, 1, 1, 2), "bfloat16")
    assert keras.backend.standardize_dtype(products(half, half).dtype) == "float32"


def test_a_scan_sees_one_position_at_a_time():
    """Running sums, from inputs `[B, 1, ...]` like those of one beam."""
    x = np.arange(12.0, dtype="float32").reshape(2, 3, 2)

    def body(total, inputs):
        assert tuple(inputs.shape) == (2, 1, 2)
        return total + inputs, total + inputs

    tensor = ops.convert_to_tensor(x)
    found = scan_time(body, tensor, tensor)
    np.testing.assert_array_equal(to_numpy(found), x.cumsum(axis=1))


def test_methods_that_a_recurrence_does_not_define_are_named():
    rule = Recurrence()
    for method, count in (("attend", 2), ("step", 4)):
        with pytest.raises(NotImplementedError, match=f"Recurrence has no `{method}`"):
            getattr(rule, method)(*[None] * count)
    assert rule.layers(None) == rule.prepare(None, {}) == rule.get_config() == {}
