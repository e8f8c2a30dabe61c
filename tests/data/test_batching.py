import hashlib
import tracemalloc
from collections import Counter

import numpy as np
import pytest

from keras_attnvariants.data import BatchPlan
from keras_attnvariants.data import Mixture
from tests.data.test_bucketing import random_lengths


def plan(seed=1, **options):
    return BatchPlan(*random_lengths(), batch_tokens=1024, seed=seed, **options)


def epoch(plan, number=0):
    start = number * plan.num_batches
    return [plan.batch(start + i) for i in range(plan.num_batches)]


def positions(shape):
    """Padded source and target positions of a batch."""
    return shape.rows * (shape.source_length + shape.target_length)


def padding_share(plan, source, target):
    """Share of an epoch's positions that hold no token, empty rows included."""
    batches = epoch(plan)
    padded = sum(positions(shape) for shape, _ in batches)
    return 1 - sum((source + target)[pairs].sum() for _, pairs in batches) / padded


def test_every_pair_comes_once_in_each_epoch():
    made = plan()
    for number in range(3):
        pairs = np.concatenate([pairs for _, pairs in epoch(made, number)])
        assert sorted(pairs) == list(range(2000))


def test_batches_hold_their_pairs_within_the_budget():
    source, target = random_lengths()
    made = plan()
    for shape, pairs in epoch(made):
        assert shape in made.shapes
        assert 1 <= len(pairs) <= shape.rows
        assert source[pairs].max() <= shape.source_length
        assert target[pairs].max() <= shape.target_length
        assert positions(shape) <= 1024
    assert len(made.shapes) <= 32


def test_batches_depend_on_seed_and_index_only():
    first, second = plan(), plan()
    order = np.random.default_rng(0).permutation(3 * first.num_batches)
    for i in order:
        shape, pairs = second.batch(i)
        assert first.batch(i)[0] == shape
        assert np.array_equal(first.batch(i)[1], pairs)


@pytest.mark.parametrize(
    ("mixture", "expected"),
    [
        (None, "07eac825b7deabf5"),
        (Mixture((1500, 500), weights=(1, 2)), "f96aee67eb50f9d9"),
    ],
    ids=["one corpus", "two corpora"],
)
def test_batches_are_those_of_earlier_releases(mixture, expected):
    # Runs that were begun with one version continue with another.
    made = plan(mixture=mixture, max_length=40)
    digest = hashlib.sha256()
    for number in range(2):
        for shape, pairs in epoch(made, number):
            digest.update(f"{tuple(shape)} {pairs.tolist()}".encode())
    assert digest.hexdigest()[:16] == expected


def test_memory_and_the_middle_of_a_large_corpus(monkeypatch):
    # A block is as small a part of this corpus as of one that is larger than memory.
    monkeypatch.setattr("keras_attnvariants.data.bucketing.BLOCK", 1 << 11)
    pairs = 100_000
    sides = [side.astype(np.uint16) for side in random_lengths(pairs)]
    tracemalloc.start()
    try:
        made = BatchPlan(*sides, batch_tokens=2048, seed=1, max_length=96)
        planned, most = (size / pairs for size in tracemalloc.get_traced_memory())
        middle = 3 * made.num_batches // 2
        expected = [made.batch(middle + i) for i in range(50)]
        made.batch(2 * made.num_batches)
        shuffled = tracemalloc.get_traced_memory()[0] / pairs
    finally:
        tracemalloc.stop()
    # Bytes for each pair: its index, and its bucket while the plan is made.
    assert planned < 5.5
    assert most < 9
    assert shuffled < 14.5  # its index in two epochs more
    again = BatchPlan(*sides, batch_tokens=2048, seed=1, max_length=96)
    for i, (shape, members) in enumerate(expected):
        assert again.batch(middle + i)[0] == shape
        assert np.array_equal(again.batch(middle + i)[1], members)


def test_order_changes_with_epoch_and_seed():
    def pairs(made, number):
        return np.concatenate([p for _, p in epoch(made, number)]).tolist()

    made = plan()
    orders = [pairs(made, 0), pairs(made, 1), pairs(plan(seed=2), 0)]
    assert len({tuple(order) for order in orders}) == 3


def test_partners_change_between_epochs():
    def groups(number):
        return {frozenset(p.tolist()) for _, p in epoch(made, number) if len(p) > 1}

    made = plan(max_shapes=8)
    assert not groups(0) & groups(1)


def test_without_a_seed_the_corpus_keeps_its_order():
    made = plan(seed=None)
    by_shape = {}
    for shape, pairs in epoch(made):
        by_shape.setdefault(shape, []).extend(pairs)
    assert all(pairs == sorted(pairs) for pairs in by_shape.values())
    assert epoch(made, 1)[0][1].tolist() == epoch(made, 0)[0][1].tolist()


def test_few_rows_are_empty():
    made = plan()
    empty, batches = Counter(), Counter()
    for shape, pairs in epoch(made):
        empty[shape] += shape.rows - len(pairs)
        batches[shape] += 1
    assert all(empty[shape] < batches[shape] for shape in made.shapes)


def test_slightly_smaller_batches_if_the_last_is_fuller_then():
    made = BatchPlan([8] * 1830, [8] * 1830, batch_tokens=16 * 64)
    assert made.shapes == ((61, 8, 8),)
    assert made.num_batches == 30
    assert all(len(pairs) == 61 for _, pairs in epoch(made))


def test_statistics_are_those_of_an_epoch():
    made = plan()
    assert made.num_batches == len(epoch(made))
    assert made.num_pairs == sum(len(pairs) for _, pairs in epoch(made)) == 2000
    assert made.num_skipped == 0


def test_long_and_empty_pairs_are_skipped_and_counted():
    made = BatchPlan([0, 3, 40, 5], [4, 0, 5, 6], 64, max_length=32)
    assert made.num_skipped == 3
    assert [pairs.tolist() for _, pairs in epoch(made)] == [[3]]


def test_shapes_of_another_plan():
    made = plan()
    other = BatchPlan([5, 7, 400], [6, 9, 3], seed=None, shapes=made.shapes)
    assert other.shapes == made.shapes
    assert other.num_skipped == 1
    assert {shape for shape, _ in epoch(other)} <= set(made.shapes)
    assert sorted(np.concatenate([p for _, p in epoch(other)])) == [0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_tokens": 10}, "`batch_tokens` must hold at least one pair"),
        ({"batch_tokens": 0}, "`batch_tokens` must be a positive integer"),
        ({"max_length": 0}, "`max_length` must be a positive integer"),
        ({"max_shapes": 0}, "`max_shapes` must be a positive integer"),
        ({"multiple": 0}, "`multiple` must be a positive integer"),
        ({"seed": -1}, "`seed` must be an integer >= 0"),
        ({"max_length": 2}, "No sentence pair is left"),
        ({"target_lengths": [4]}, "vectors of one length"),
    ],
)
def test_bad_arguments(options, message):
    arguments = {"source_lengths": [9, 10], "target_lengths": [9, 12]} | options
    with pytest.raises(ValueError, match=rf"{message}.*Received: "):
        BatchPlan(**arguments)


def test_negative_indices_are_refused():
    with pytest.raises(ValueError, match="`index`.*Received: -1"):
        plan().batch(-1)
