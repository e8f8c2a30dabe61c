"""Plain attention as a special case of recurrences, and sums of their weights."""

import numpy as np
import pytest

from keras_attnvariants.attention import recurrences
from tests.attention.recurrences.tools import EXPANDED
from tests.attention.recurrences.tools import NAMES
from tests.attention.recurrences.tools import arrays
from tests.attention.recurrences.tools import built
from tests.attention.recurrences.tools import check_baseline
from tests.attention.recurrences.tools import scores_of


def without_recurrence(name):
    """Options, or weights set to 0, that reduce a recurrence to plain attention."""
    if name == "accumulated_energies":
        return built(recurrences.AccumulatedEnergies(rate=1.0))
    if name == "subtracted_weights":
        return built(recurrences.SubtractedWeights(rate=0.0))
    layer = built(name)
    layer.recurrent["query"].kernel.assign(0.0 * layer.recurrent["query"].kernel)
    return layer


@pytest.mark.parametrize("name", [name for name in NAMES if name not in EXPANDED])
def test_without_recurrence_it_is_the_baseline(name):
    query, value, mask = arrays()
    layer = without_recurrence(name)
    check_baseline(layer, query, value, mask)
    changed = scores_of(built(name), query, value, value_mask=mask)
    plain = scores_of(layer, query, value, value_mask=mask)
    assert np.abs(changed - plain).max() > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_weights_sum_to_one(name):
    query, value, mask = arrays()
    sums = scores_of(built(name), query, value, value_mask=mask).sum(-1)
    if name in EXPANDED:  # the rest is the weight of the extra pair
        assert (sums > 0).all() and (sums < 0.99).any() and (sums <= 1 + 1e-6).all()
    else:
        np.testing.assert_allclose(sums, 1.0, atol=1e-5)
