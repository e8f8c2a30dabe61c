"""Operations on neighbours: bands, delays, and n-grams with their visibility."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import Masks
from keras_attnvariants.attention.banded import block_band
from keras_attnvariants.attention.banded import block_size
from keras_attnvariants.attention.banded import block_windows
from keras_attnvariants.attention.banded import complete
from keras_attnvariants.attention.banded import delay
from keras_attnvariants.attention.banded import join_blocks
from keras_attnvariants.attention.banded import last_ngrams
from keras_attnvariants.attention.banded import ngrams
from keras_attnvariants.attention.banded import visible
from tests.attention.conformance import lengths_mask
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


@pytest.mark.parametrize(("taps", "size"), [(1, 4), (3, 4), (4, 4), (5, 2)])
def test_rows_of_a_band_hold_the_taps_from_their_own_column_on(taps, size):
    kernel = np.random.default_rng(0).normal(size=(taps, 2)).astype("float32")
    band = np.asarray(ops.convert_to_numpy(block_band(kernel, size)))
    expected = np.zeros((2, size, size + taps - 1), "float32")
    for row in range(size):
        expected[:, row, row : row + taps] = kernel.T
    np.testing.assert_array_equal(band, expected)


LENGTH = 5


@pytest.mark.parametrize("distance", [-6, -1, 0, 1, 3, 7])
@pytest.mark.parametrize("axis", [1, -1])
def test_delay(distance, axis):
    x = np.arange(1.0, 1 + 2 * LENGTH * LENGTH).reshape(2, LENGTH, LENGTH)
    expected = np.zeros_like(x)
    for t in range(LENGTH):
        if 0 <= t - distance < LENGTH:
            where, origin = [slice(None)] * 3, [slice(None)] * 3
            where[axis], origin[axis] = t, t - distance
            expected[tuple(where)] = x[tuple(origin)]
    found = to_numpy(delay(ops.convert_to_tensor(x), distance, axis))
    np.testing.assert_array_equal(found, expected)


def test_an_ngram_ends_at_its_position():
    x = np.array([[[1.0], [2.0], [3.0]]])
    found = to_numpy(ngrams(ops.convert_to_tensor(x), 3))
    assert found[0].tolist() == [[0, 0, 1], [0, 1, 2], [1, 2, 3]]


def test_an_ngram_is_complete_if_all_tokens_are():
    tokens = ops.convert_to_tensor(np.array([[True, True, False, True, True]]))
    found = [to_numpy(complete(tokens, order))[0].tolist() for order in (1, 2, 3)]
    assert found == [
        [True, True, False, True, True],
        [False, True, False, False, True],
        [False, False, False, False, False],
    ]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("with_missing", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("pattern", [False, True])
def test_a_query_sees_an_ngram_if_it_sees_its_tokens(
    order, with_missing, causal, pattern
):
    """With missing tokens, those before the sentence or in padding may be hidden."""
    real = lengths_mask([LENGTH, 3], LENGTH)
    real[0, :1] = False  # padding on the left
    may_see = np.random.default_rng(1).random((2, LENGTH, LENGTH)) < 0.7
    may_see = may_see if pattern else np.ones_like(may_see)
    masks = Masks(key=real, attention=may_see if pattern else None, causal=causal)
    found = to_numpy(visible(masks, order, LENGTH, LENGTH, with_missing))
    found = np.broadcast_to(found, (2, LENGTH, LENGTH))
    for b, i, j in np.ndindex(found.shape):
        tokens = range(j - order + 1, j + 1)
        exists = [t >= 0 and real[b, t] for t in tokens]
        seen = [t >= 0 and may_see[b, i, t] and (t <= i or not causal) for t in tokens]
        both = [e and s for e, s in zip(exists, seen, strict=True)]
        expected = all(both)
        if with_missing:
            allowed = [s or not e for e, s in zip(exists, seen, strict=True)]
            expected = both[-1] and all(allowed)
        assert found[b, i, j] == expected, (b, i, j)


def test_the_last_ngrams_end_with_the_window():
    window = ops.convert_to_tensor(np.arange(2 * 3 * 4.0).reshape(1, 2, 12))
    found = {n: to_numpy(x) for n, x in last_ngrams(window, 4).items()}
    for order in (1, 2, 3):
        expected = to_numpy(window)[..., -4 * order :]
        np.testing.assert_array_equal(found[order], expected)
    assert len(found) == 3
