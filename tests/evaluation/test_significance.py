"""Intervals and tests against values by hand."""

import numpy as np
import pytest
from scipy import stats

from keras_attnvariants.evaluation.significance import holm
from keras_attnvariants.evaluation.significance import mean_interval
from keras_attnvariants.evaluation.significance import seed_tests


def test_the_interval_of_a_mean_by_hand():
    # Student's t for 2 degrees of freedom at 97.5 % is 4.302653.
    found = mean_interval([30.0, 31.0, 32.0])
    assert found == pytest.approx((31.0, 1.0, 31 - 4.302653 / 3**0.5, 33.484138), 1e-6)
    assert mean_interval([30.0]) == (30.0, None, None, None)


def test_the_tests_over_seeds_are_those_of_scipy():
    system, baseline = {1: 31.2, 2: 30.9, 3: 31.6}, {1: 30.1, 2: 30.8, 3: 30.2}
    found = seed_tests(system, baseline)
    first, second = list(system.values()), list(baseline.values())
    assert found.welch == stats.ttest_ind(first, second, equal_var=False).pvalue
    assert found.paired == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert found.low < np.mean(first) - np.mean(second) < found.high
    reverse = seed_tests(baseline, system)
    assert (reverse.low, reverse.high) == pytest.approx((-found.high, -found.low))


def test_runs_of_other_seeds_are_not_paired():
    found = seed_tests({1: 31.0, 2: 30.0}, {3: 29.0, 4: 28.5})
    assert found.welch is not None
    assert found.paired is None


@pytest.mark.filterwarnings("error")
def test_what_has_no_spread_has_no_test():
    assert set(seed_tests({1: 31.0}, {1: 30.0})) == {None}
    assert set(seed_tests({1: 31.0, 2: 31.0}, {1: 30.0, 2: 30.0})) == {None}


def test_the_correction_of_holm_by_hand():
    # The smallest of four counts four times, the next three times, …
    assert holm([0.005, 0.011, 0.02, 0.04]) == pytest.approx([0.02, 0.033, 0.04, 0.04])
    # A later one is never smaller than one before it.
    assert holm([0.03, 0.02]) == [0.04, 0.04]
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([None, 0.04]) == [None, 0.04]
    assert holm([]) == []
