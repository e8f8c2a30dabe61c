"""Intervals and tests against values by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from keras_attnvariants.evaluation.significance import POWER
from keras_attnvariants.evaluation.significance import TARGET
from keras_attnvariants.evaluation.significance import critical_value
from keras_attnvariants.evaluation.significance import holm
from keras_attnvariants.evaluation.significance import mean_interval
from keras_attnvariants.evaluation.significance import power
from keras_attnvariants.evaluation.significance import seed_tests
from keras_attnvariants.evaluation.significance import seeds_needed


def test_the_interval_of_a_mean_by_hand():
    # Student's t for 2 degrees of freedom at 97.5 % is 4.302653.
    found = mean_interval([30.0, 31.0, 32.0])
    assert found == pytest.approx((31.0, 1.0, 31 - 4.302653 / 3**0.5, 33.484138), 1e-6)
    assert mean_interval([30.0]) == (30.0, None, None, None)


SYSTEMS = {
    "a": {1: 31.2, 2: 30.9, 3: 31.6},
    "b": {1: 29.9, 2: 30.4, 3: 30.1, 4: 30.3},
    "c": {2: 33.0},
}
BASELINE = {1: 30.1, 2: 30.8, 3: 30.2}


def test_the_tests_over_seeds_are_those_of_scipy():
    found = seed_tests(SYSTEMS, BASELINE)
    scores = [[*own.values()] for own in SYSTEMS.values()]
    expected = stats.dunnett(
        *scores, control=[*BASELINE.values()], rng=np.random.default_rng(2)
    )
    p_values = [tests.dunnett for tests in found.values()]
    assert p_values == pytest.approx(expected.pvalue, abs=2e-3)
    interval = expected.confidence_interval()
    for tests, low, high in zip(found.values(), *interval, strict=True):
        assert (tests.low, tests.high) == pytest.approx((low, high), abs=0.03)


def test_with_one_system_dunnett_is_the_t_test():
    found = seed_tests({"a": SYSTEMS["a"]}, BASELINE)["a"]
    expected = stats.ttest_ind([*SYSTEMS["a"].values()], [*BASELINE.values()])
    assert found.dunnett == pytest.approx(expected.pvalue, rel=1e-2)
    low, high = expected.confidence_interval()
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.02)


@pytest.mark.filterwarnings("error")
def test_what_has_no_spread_has_no_test():
    assert set(seed_tests({"a": {1: 31.0}}, {1: 30.0})["a"]) == {None}
    same = seed_tests({"a": {1: 31.0, 2: 31.0}}, {1: 30.0, 2: 30.0})["a"]
    assert set(same) == {None}
    assert seed_tests({}, {1: 30.0, 2: 31.0}) == {}


@pytest.mark.parametrize(("systems", "seeds"), [(1, 2), (3, 3), (5, 4)])
def test_power_is_that_of_simulated_comparisons(systems, seeds):
    """The share that is found of 20,000 comparisons with one difference."""
    rng = np.random.default_rng(3)
    count, confidence, deviation = 20_000, 0.95, 0.4
    base, *others = rng.normal(0, deviation, (systems + 1, count, seeds))
    variance = np.mean([group.var(1, ddof=1) for group in (base, *others)], axis=0)
    differences = np.array(others).mean(2) - base.mean(1)
    errors = np.sqrt(2 * variance / seeds)
    critical = critical_value(systems, seeds, confidence)
    wrong = (np.abs(differences) > critical * errors).any(0).mean()
    assert wrong == pytest.approx(1 - confidence, abs=0.007)
    effect = 2.5
    shift = effect * deviation * math.sqrt(2 / seeds)
    right = (np.abs(differences[0] + shift) > critical * errors).mean()
    freedom = (systems + 1) * (seeds - 1)
    assert power(effect, critical, freedom) == pytest.approx(right, abs=0.015)


def test_what_the_seeds_would_find():
    found = seed_tests(SYSTEMS, BASELINE)
    groups = [[*own.values()] for own in (BASELINE, *SYSTEMS.values())]
    freedom = sum(map(len, groups)) - len(groups)
    variance = sum(np.var(group) * len(group) for group in groups) / freedom
    error = math.sqrt(variance * (1 / 3 + 1 / 3))
    critical = (found["a"].high - found["a"].low) / 2 / error
    effect = found["a"].detectable / error
    assert power(effect, critical, freedom) == pytest.approx(POWER)
    # A system with fewer runs needs a larger difference.
    assert found["b"].detectable < found["a"].detectable < found["c"].detectable
    needed = found["a"].seeds_needed
    powers = [
        power(
            TARGET / math.sqrt(2 * variance / seeds),
            critical_value(3, seeds, 0.95),
            4 * (seeds - 1),
        )
        for seeds in (needed - 1, needed)
    ]
    assert powers[0] < POWER <= powers[1]
    assert seeds_needed(100.0, 3) is None


def test_the_correction_of_holm_by_hand():
    # The smallest of four counts four times, the next three times, …
    assert holm([0.005, 0.011, 0.02, 0.04]) == pytest.approx([0.02, 0.033, 0.04, 0.04])
    # A later one is never smaller than one before it.
    assert holm([0.03, 0.02]) == [0.04, 0.04]
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
