"""Packing sequences into batches of few shapes."""

import numpy as np

from keras_attnvariants.decoding.texts import pad_sequences
from keras_attnvariants.decoding.texts import plan_batches


def test_plan_holds_every_sequence_once_in_the_smallest_shape():
    lengths = np.random.default_rng(0).integers(1, 65, size=75).tolist()
    batches = list(plan_batches(lengths, sizes=(1, 8, 32), buckets=(16, 32, 64)))
    places = np.concatenate([indices for indices, _, _ in batches])
    assert sorted(places.tolist()) == list(range(75))
    assert [len(indices) for indices, _, _ in batches] == [32, 32, 11]
    assert [size for _, size, _ in batches] == [32, 32, 32]
    for indices, _, length in batches:
        longest = max(lengths[index] for index in indices)
        assert longest <= length < max(2 * longest, 17)


def test_plan_prefers_small_batches_and_accepts_none():
    assert [n for _, n, _ in plan_batches([3] * 9, (1, 8), buckets=(4,))] == [8, 1]
    assert list(plan_batches([], sizes=(1, 8), buckets=(4,))) == []


def test_pad_fills_rows_and_columns():
    ids = pad_sequences([[5, 6], [7]], size=3, length=4, pad_id=0)
    assert ids.tolist() == [[5, 6, 0, 0], [7, 0, 0, 0], [0, 0, 0, 0]]
    assert ids.dtype == np.int32
