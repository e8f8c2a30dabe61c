"""Arguments that no search takes; `test_constraints` tries them on the searches."""

import pytest

from keras_attnvariants.decoding.checks import check_lengths


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
    check_lengths(8, 9, 9)
    check_lengths(8, None, 9)
