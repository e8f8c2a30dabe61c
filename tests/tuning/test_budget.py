"""Budgets of trials."""

import pytest

from keras_attnvariants.tuning import Budget


def test_updates_are_the_same_for_all_batches():
    budget = Budget(updates=90)
    assert [budget.steps(batch, 9) for batch in (512, 1024)] == [90, 90]
    assert budget.period(512) == 10
    assert [budget.steps(512, parts) for parts in (1, 3, 9)] == [10, 30, 90]


def test_tokens_are_fewer_updates_of_larger_batches():
    budget = Budget(tokens=90_000)
    assert budget.steps(1000, 9) == 90 and budget.steps(2000, 9) == 45


def test_minutes_are_a_time_limit():
    budget = Budget(minutes=9, validate_every=7)
    assert budget.time_limit(3) == 3 and budget.time_limit(9) == 9
    assert budget.period(512) == 7
    assert Budget(updates=9).time_limit(9) is None


def test_what_a_trial_is_trained_with():
    budget = Budget(tokens=90_000)
    assert budget.training(500, {"accumulate": 2, "log_every": 3}, 3) == {
        **{"accumulate": 2, "log_every": 3, "save_every": 10},
        **{"steps": 30, "validate_every": 10},
    }
    assert Budget(updates=9).training(500, {}, 9)["log_every"] == 1


@pytest.mark.parametrize("given", [{}, {"updates": 1, "tokens": 2}])
def test_exactly_one(given):
    with pytest.raises(ValueError, match="must be one of"):
        Budget(**given)
