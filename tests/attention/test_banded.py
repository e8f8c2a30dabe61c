"""Blocks, their windows, and the buffer of one position at a time."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention.banded import block_band
from keras_attnvariants.attention.banded import block_size
from keras_attnvariants.attention.banded import block_windows
from keras_attnvariants.attention.banded import join_blocks
from keras_attnvariants.attention.banded import slide
from tests.attention.conformance import to_numpy


@pytest.mark.parametrize("length", [1, 7, 64, 65, 200])
@pytest.mark.parametrize("first, span", [(0, 0), (-4, 4), (-4, 8), (-90, 100)])
def test_windows_hold_the_neighbours_of_every_position(length, first, span):
    x = np.arange(1, 2 * length + 1).reshape(2, length)
    size = block_size(length, span)
    windows = to_numpy(block_windows(ops.convert_to_tensor(x), first, span, size))
    assert windows.shape[2] == size + span
    padded = np.pad(x, ((0, 0), (span, span)))
    for t in range(length):
        block, i = divmod(t, size)
        expected = padded[:, t + span + first : t + 2 * span + first + 1]
        np.testing.assert_array_equal(windows[:, block, i : i + span + 1], expected)


def test_blocks_are_joined_in_order():
    x = ops.convert_to_tensor(np.arange(140.0).reshape(2, 70))
    size = block_size(70, 0)
    joined = join_blocks(block_windows(x, 0, 0, size), 70)
    np.testing.assert_array_equal(to_numpy(joined), to_numpy(x))


@pytest.mark.parametrize("slots", [0, 1, 3])
def test_sliding_keeps_the_newest(slots):
    buffer = ops.zeros((1, 1, slots))
    for t in range(1, 6):
        window, buffer = slide(buffer, ops.full((1, 1), float(t)))
        seen = [float(max(t - back, 0)) for back in range(slots, -1, -1)]
        assert to_numpy(window)[0, 0].tolist() == seen
        assert to_numpy(buffer)[0, 0].tolist() == seen[1:]


@pytest.mark.parametrize(("taps", "size"), [(1, 4), (3, 4), (4, 4), (5, 2)])
def test_rows_of_a_band_hold_the_taps_from_their_own_column_on(taps, size):
    kernel = np.random.default_rng(0).normal(size=(taps, 2)).astype("float32")
    band = np.asarray(ops.convert_to_numpy(block_band(kernel, size)))
    expected = np.zeros((2, size, size + taps - 1), "float32")
    for row in range(size):
        expected[:, row, row : row + taps] = kernel.T
    np.testing.assert_array_equal(band, expected)
