"""Products and orders of heads in decoding steps."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.backend import row_products
from keras_attnvariants.backend import swap_parts
from keras_attnvariants.backend import swap_rows


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def test_products_of_rows():
    x, y = numbers(2, 3, 4, 5), numbers(2, 3, 7, 5)
    expected = np.einsum("bhtd,bhsd->bhts", x, y)
    np.testing.assert_allclose(row_products(x, y), expected)


def test_rows_change_places():
    x = numbers(2, 3, 4, 5)
    swapped = swap_rows(ops.convert_to_tensor(x))
    np.testing.assert_array_equal(swapped, x.transpose(0, 2, 1, 3))
    np.testing.assert_array_equal(swap_rows(swapped), x)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_parts_lie_side_by_side(count):
    x = numbers(2, 3, 8, 5)
    parts = swap_parts(ops.convert_to_tensor(x), count)
    expected = np.split(x.transpose(0, 2, 1, 3), count, axis=1)
    for part, rows in zip(parts, expected, strict=True):
        np.testing.assert_array_equal(part, rows)
