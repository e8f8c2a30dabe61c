"""Random numbers by key: the published vectors, and properties that samples need."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.decoding.sampling import threefry
from keras_attnvariants.decoding.sampling import to_uint32
from keras_attnvariants.decoding.sampling import uniform
from tests.decoding.toys import COMPILERS


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        # The vectors of Random123, the authors' own library.
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_known_answers(key, counter, expected):
    found = threefry(tuple(map(to_uint32, key)), tuple(map(to_uint32, counter)))
    assert tuple(int(ops.convert_to_numpy(x)) for x in found) == expected


def numbers(seeds, streams, count, xla=False):
    def draw(seeds, streams):
        return uniform(ops.cast(seeds, "uint32"), ops.cast(streams, "uint32"), count)

    pair = (ops.convert_to_tensor(x, dtype="int32") for x in (seeds, streams))
    return ops.convert_to_numpy(backend.jit(draw, xla=xla)(*pair))


@pytest.mark.parametrize("xla", COMPILERS)
def test_numbers_depend_on_their_keys_alone(xla):
    table = numbers([3, 7, 7, 2**31 - 1], [0, 0, 1, 5], 4, xla)
    assert len(np.unique(table)) == 16
    for row, pair in zip(table, [(3, 0), (7, 0), (7, 1), (2**31 - 1, 5)], strict=True):
        alone = numbers([pair[0]], [pair[1]], 9)
        np.testing.assert_array_equal(alone[0, :4], row)


def test_numbers_are_uniform_and_independent():
    table = numbers(np.arange(400), np.zeros(400), 250)
    assert table.dtype == np.float32 and table.min() >= 0 and table.max() < 1
    counts, _ = np.histogram(table, bins=100, range=(0, 1))
    expected = table.size / 100
    # 99 degrees of freedom: above 160 once in ten thousand times.
    assert ((counts - expected) ** 2 / expected).sum() < 160
    for one, other in ((table[1:], table[:-1]), (table[:, 1:], table[:, :-1])):
        correlation = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert abs(correlation) < 4 / np.sqrt(one.size)
