"""Padded lengths, and the pairs of each."""

import numpy as np
import pytest

from keras_attnvariants.data.bucketing import assign
from keras_attnvariants.data.bucketing import blocks
from keras_attnvariants.data.bucketing import choose_lengths
from keras_attnvariants.data.bucketing import members


def random_lengths(count=2000):
    random = np.random.default_rng(0)
    source = 1 + random.poisson(random.gamma(3, 6, count))
    target = np.maximum(1, np.round(source * random.normal(1.1, 0.2, count))).astype(
        int
    )
    return source, target


def padding_share(source, target, lengths):
    bucket = assign(source, target, lengths)
    sizes = np.array([sum(pair) for pair in lengths])
    assert (bucket >= 0).all()
    return 1 - (source.sum() + target.sum()) / sizes[bucket].sum()


@pytest.mark.parametrize("max_shapes", [1, 2, 5, 12])
@pytest.mark.parametrize("multiple", [1, 4, 8])
def test_every_pair_fits_within_few_lengths(max_shapes, multiple):
    source, target = random_lengths()
    lengths = choose_lengths(source, target, 256, max_shapes, multiple)
    assert 1 <= len(lengths) <= max_shapes
    assert (assign(source, target, lengths) >= 0).all()
    assert all(side % multiple == 0 for pair in lengths for side in pair)


def test_more_shapes_pad_less():
    source, target = random_lengths()
    shares = [
        padding_share(source, target, choose_lengths(source, target, 256, shapes, 1))
        for shapes in (1, 2, 4, 8, 16)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.15 < 0.5 < shares[0]


def test_no_worse_than_quantiles():
    source, target = random_lengths()
    longest = np.maximum(source, target)
    quantiles = sorted({int(q) for q in np.quantile(longest, np.arange(1, 13) / 12)})
    fixed = [(length, length) for length in [*quantiles[:-1], int(longest.max())]]
    chosen = choose_lengths(source, target, 256, 12, 1)
    assert padding_share(source, target, chosen) < padding_share(source, target, fixed)


def test_few_different_lengths_are_met_exactly():
    source = np.array([3, 3, 10, 20, 20])
    target = np.array([5, 5, 4, 30, 30])
    assert choose_lengths(source, target, 64, 12, 1) == [(3, 5), (10, 4), (20, 30)]


def test_long_and_empty_pairs_do_not_count():
    source = np.array([0, 3, 300, 4, 7])
    target = np.array([4, 0, 4, 300, 9])
    lengths = choose_lengths(source, target, 256, 12, 1)
    assert lengths == [(7, 9)]
    assert assign(source, target, lengths).tolist() == [-1, -1, -1, -1, 0]
    assert choose_lengths(source[:4], target[:4], 256, 12, 1) == []


def test_lengths_never_pass_the_longest_allowed():
    source, target = np.array([9, 10]), np.array([10, 3])
    assert choose_lengths(source, target, 10, 1, 8) == [(10, 10)]


def test_pairs_take_the_cheapest_lengths():
    lengths = [(20, 20), (8, 8), (12, 4)]
    source, target = np.array([8, 9, 9]), np.array([3, 4, 5])
    assert assign(source, target, lengths).tolist() == [1, 2, 0]


@pytest.mark.parametrize("seed", range(20))
def test_all_lengths_are_used(seed):
    random = np.random.default_rng(seed)
    source, target = random.integers(1, 13, 60), random.integers(1, 13, 60)
    lengths = choose_lengths(source, target, 12, 12, 1)
    bucket = assign(source, target, lengths)
    assert set(bucket.tolist()) == set(range(len(lengths)))


def test_blocks_change_nothing(monkeypatch):
    def found():
        source, target = random_lengths()
        lengths = choose_lengths(source, target, 60, 12, 2)
        bucket = assign(source, target, lengths)
        return lengths, bucket.tolist(), [m.tolist() for m in members(bucket, 12)]

    whole = found()
    assert -1 in whole[1]
    monkeypatch.setattr("keras_attnvariants.data.bucketing.BLOCK", 7)
    assert found() == whole


@pytest.mark.parametrize("count", [1, 3, 200])
def test_members_are_in_order(count):
    bucket = np.random.default_rng(0).integers(-1, count, 5000)
    found = members(bucket, count)
    assert len(found) == count
    for b, pairs in enumerate(found):
        assert pairs.dtype == np.uint32
        assert np.array_equal(pairs, np.flatnonzero(bucket == b))


@pytest.mark.parametrize("count", [100, 127, 128, 200])
def test_many_lengths_have_room(count):
    lengths = [(n, n) for n in range(1, count + 1)]
    sides = np.arange(1, count + 1).astype(np.uint16)
    assert assign(sides, sides, lengths).tolist() == list(range(count))


@pytest.mark.parametrize("count", [0, 1, 7, 8, 20])
def test_blocks_follow_one_another(monkeypatch, count):
    monkeypatch.setattr("keras_attnvariants.data.bucketing.BLOCK", 7)
    found = [range(count)[block] for block in blocks(count)]
    assert [i for part in found for i in part] == list(range(count))
    assert all(1 <= len(part) <= 7 for part in found)
