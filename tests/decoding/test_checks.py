"""Arguments that no search takes; `test_constraints` tries them on the searches."""

import pytest

from keras_attnvariants.decoding.checks import check_lengths
from keras_attnvariants.decoding.checks import check_search


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0.6, 1), "`beam_size` must be a positive integer. Received: 0"),
        ((4, 0.6, 1.5), "`n_best` must be .* Received: 1.5"),
        ((4, 0.6, 5), r"`n_best` must be at most `beam_size` \(4\). Received: 5"),
        ((4, float("inf"), 1), "`length_penalty` must be .* Received: inf"),
        ((4, True, 1), "`length_penalty` must be .* Received: True"),
        ((4, None, 1), "`length_penalty` must be .* Received: None"),
    ],
)
def test_what_is_no_beam_search_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_search(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, None, 9), "`min_length` must be an integer >= 0. Received: -1"),
        ((0, 0, 9), "`max_length` must be a positive integer. Received: 0"),
        ((0, 10, 9), r"`max_length` must be at most .*\(9\). Received: 10"),
        ((9, None, 9), "`min_length` must be below 9, .* Received: 9"),
        ((4, 4, 9), "`min_length` must be below 4, .* Received: 4"),
    ],
)
def test_lengths_that_exclude_each_other_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_lengths(*arguments)


def test_the_limits_themselves_are_fine():
    check_search(4, -0.5, 4)
    check_lengths(8, 9, 9)
    check_lengths(8, None, 9)
