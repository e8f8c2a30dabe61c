"""BLEU of bins from the statistics of their sentences."""

import pytest
from sacrebleu.metrics.bleu import BLEU

from keras_attnvariants.analysis import binned


def test_the_interval_is_that_of_resampled_sentences():
    """Half of the sentences are right: BLEU varies with how many are drawn."""
    right = [["a b c d e"] * 50, ["v w x y z"] * 50]
    found = binned.statistics(BLEU(), sum(right, []), ["a b c d e"] * 100)
    drawn = binned.resampled(found[:, None], 2000, 1)[:, 0]
    low, high = binned.interval(drawn)
    # Precisions are the share of sentences that are right: 50 % with deviation 5.
    assert binned.bleu(found.sum(0)) == pytest.approx(50)
    assert (low, high) == pytest.approx((50 - 9.8, 50 + 9.8), abs=1)
    assert (binned.resampled(found[:, None], 3, 1)[:, 0] == drawn[:3]).all()
