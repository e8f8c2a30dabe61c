"""How often the pairs of several corpora are seen, and in which order."""

import numpy as np
import pytest

from keras_attnvariants.data import BatchPlan
from keras_attnvariants.data import Mixture

SIZES = 300, 50, 7


def plan(mixture, seed=3, **options):
    random = np.random.default_rng(0)
    lengths = random.integers(1, 20, (2, sum(SIZES)))
    return BatchPlan(*lengths, batch_tokens=128, seed=seed, mixture=mixture, **options)


def shown(plan, epochs, start=0):
    """How often each pair is in some epochs."""
    counts = np.zeros(sum(SIZES), int)
    for index in range(start * plan.num_batches, (start + epochs) * plan.num_batches):
        np.add.at(counts, plan.batch(index)[1], 1)
    return counts


def by_corpus(counts):
    return np.split(counts, np.cumsum(SIZES)[:-1])


@pytest.mark.parametrize(
    ("mixture", "expected"),
    [
        (Mixture((100, 400)), [0.2, 0.8]),
        (Mixture((100, 400), temperature=2), [1 / 3, 2 / 3]),
        (Mixture((100, 400), temperature=1e9), [0.5, 0.5]),
        (Mixture((100, 400), weights=(3, 1)), [0.75, 0.25]),
    ],
    ids=str,
)
def test_shares(mixture, expected):
    np.testing.assert_allclose(mixture.shares((100, 400)), expected, atol=1e-6)


def test_a_corpus_without_usable_pairs_has_no_share():
    mixture = Mixture((5, 5, 5), weights=(1, 1, 2))
    np.testing.assert_allclose(mixture.shares((5, 0, 5)), [1 / 3, 0, 2 / 3])


def test_without_weights_every_pair_is_seen_once():
    assert set(shown(plan(Mixture(SIZES)), 1)) == {1}


@pytest.mark.parametrize("options", [{"weights": (1, 1, 2)}, {"temperature": 5}])
def test_epochs_have_the_shares_and_pairs_take_turns(options):
    mixture = Mixture(SIZES, **options)
    found = plan(mixture)
    for epochs in (1, 9):
        counts = shown(found, epochs)
        assert counts.sum() == epochs * sum(SIZES) == epochs * found.num_pairs
        totals = [part.sum() for part in by_corpus(counts)]
        expected = mixture.shares(SIZES) * counts.sum()
        # An epoch rounds once in each bucket.
        assert np.abs(totals - expected).max() <= epochs * len(found.shapes)
    for part, size in zip(by_corpus(counts), SIZES, strict=True):
        # Buckets round apart; within a bucket no pair is two times behind another.
        assert part.max() - part.min() <= 2 + 9 * len(found.shapes) / size


def test_batches_depend_on_the_seed_and_their_number_only():
    mixture = Mixture(SIZES, temperature=3)
    one, two, other = plan(mixture), plan(mixture), plan(mixture, seed=4)
    last = 3 * one.num_batches
    for index in (last, 5, last - 1, 0):  # in any order
        np.testing.assert_array_equal(one.batch(index)[1], two.batch(index)[1])
    assert any(
        one.batch(index)[1].tolist() != other.batch(index)[1].tolist()
        for index in range(one.num_batches)
    )


def test_validation_has_every_pair_once():
    assert set(shown(plan(Mixture(SIZES, weights=(1, 1, 1)), seed=None), 1)) == {1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.5}, "must not be below 1"),
        ({"weights": (1, 2)}, "as many as the corpora. Received: 2 for 3"),
        ({"weights": (1, 0, 2)}, "`weights` must be a positive number"),
        ({"weights": (1, 1, 2), "temperature": 2}, "give one of them"),
    ],
    ids=str,
)
def test_wrong_mixtures(options, message):
    with pytest.raises(ValueError, match=message):
        Mixture(SIZES, **options)
