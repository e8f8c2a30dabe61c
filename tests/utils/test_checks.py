"""Checks of arguments, and seeds."""

import numpy as np
import pytest

from keras_attnvariants.utils.checks import check_address
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_known
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.checks import check_rate
from keras_attnvariants.utils.checks import check_seed
from keras_attnvariants.utils.checks import check_share
from keras_attnvariants.utils.checks import seeds_of_texts


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", None])
def test_no_positive_integer(value):
    with pytest.raises(ValueError, match="`n` must be a positive integer. Received"):
        check_integer("n", value)


def test_integers_of_numpy_become_python_integers():
    assert type(check_integer("n", np.int64(3))) is int
    assert check_integer("n", 0, minimum=0) == 0
    with pytest.raises(ValueError, match=r"`n` must be an integer >= 2\. Received: 1"):
        check_integer("n", 1, minimum=2)


def test_optional():
    assert check_optional_integer("n", None) is None
    with pytest.raises(ValueError, match="`n` must be a positive integer"):
        check_optional_integer("n", 0)


@pytest.mark.parametrize("value", [0, -1.0, float("inf"), float("nan"), "1", True])
def test_no_positive_number(value):
    with pytest.raises(ValueError, match="`x` must be a positive number. Received"):
        check_positive("x", value)


@pytest.mark.parametrize("value", [-0.1, 1, float("nan"), None])
def test_no_rate(value):
    with pytest.raises(ValueError, match="`x` must be at least 0 and below 1"):
        check_rate("x", value)


def test_choices_are_listed():
    assert check_choice("mode", "a", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="must be one of 'a', 'b'. Received: 'c'"):
        check_choice("mode", "c", ("a", "b"))


def test_finite_numbers():
    assert check_finite("x", -2.5) == -2.5
    for value in (float("inf"), float("nan"), "1", None):
        with pytest.raises(ValueError, match="`x` must be a finite number"):
            check_finite("x", value)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), True, "1", None])
def test_no_share(value):
    assert [check_share("x", share) for share in (0, 0.5, 1)] == [0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="`x` must be from 0 to 1. Received"):
        check_share("x", value)


def test_an_unknown_name_gets_the_nearest_or_all():
    check_known("It", "encoder", ("encoder", "decoder"))
    with pytest.raises(ValueError, match="It has no 'encodr'. Did you mean 'encoder'"):
        check_known("It", "encodr", ("encoder", "cross"))
    with pytest.raises(ValueError, match="Known: 'a', 'b'. Received: 3"):
        check_known("It", 3, ("a", "b"))


@pytest.mark.parametrize("value", ["here", ":1", "here:0", "here:65536", "here:x", ""])
def test_no_address(value):
    assert check_address("coordinator", "[::1]:8500") == ("[::1]", 8500)
    with pytest.raises(ValueError, match="`coordinator` must be host:port. Received"):
        check_address("coordinator", value)


def test_one_seed_gives_each_text_its_own():
    seeds = seeds_of_texts(7, 100)
    assert len(set(seeds.tolist())) == 100 and seeds.dtype == np.int32
    assert seeds.min() >= 0
    np.testing.assert_array_equal(seeds, seeds_of_texts(7, 100))
    assert seeds.tolist() != seeds_of_texts(8, 100).tolist()


def test_seeds_that_are_given_stay():
    assert seeds_of_texts([3, 3, 5], 3).tolist() == [3, 3, 5]
    with pytest.raises(ValueError, match=r"one for each text \(2\). Received: 3"):
        seeds_of_texts([3, 3, 5], 2)


@pytest.mark.parametrize("value", [-1, 2**31, 1.0, True])
def test_no_seed(value):
    assert check_seed("seed", 2**31 - 1) == 2**31 - 1
    with pytest.raises(ValueError, match="`seed` must be .*Received"):
        check_seed("seed", value)
