"""One seed for all, or one for each."""

import numpy as np
import pytest

from keras_attnvariants.utils.seeds import check_seed
from keras_attnvariants.utils.seeds import seeds_of_texts


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
