"""Expanded lists: the extra pair takes its part of the softmax."""

import numpy as np
import pytest

from keras_attnvariants.attention import recurrences
from tests.attention.conformance import BATCH
from tests.attention.conformance import HEADS
from tests.attention.conformance import LENGTH
from tests.attention.conformance import WIDTH
from tests.attention.conformance import to_numpy
from tests.attention.recurrences.tools import EXPANDED
from tests.attention.recurrences.tools import arrays
from tests.attention.recurrences.tools import built
from tests.attention.recurrences.tools import check_baseline
from tests.attention.recurrences.tools import scores_of
from tests.attention.recurrences.tools import worked


def test_worked_expansion():
    """All vectors are numbers: query 1, source key 0, source value 2."""
    kernels = {"key": 0.0}
    for output, scores in worked(
        "expanded_head_key", kernels, np.ones((3, 1)), [[2.0]]
    ):
        np.testing.assert_allclose(output[:, 0], [1, 1.26894, 1.42936], atol=1e-5)
        np.testing.assert_allclose(1 - scores[:, 0], [0.5, 0.73106, 0.78056], atol=1e-5)


def test_the_extra_pair_is_dropped_as_well():
    """Otherwise a context would be 0 before the second position only."""
    layer = built("expanded_head_key", dropout=0.5, seed=1)
    layer.output_dense.kernel.assign(np.eye(WIDTH))
    layer.value_dense.kernel.assign(np.ones((WIDTH, WIDTH)))
    query, value, _ = arrays()
    value = np.abs(value[:, :1])
    output = to_numpy(layer(query, value, training=True))
    heads = output[:, 1:].reshape(BATCH, LENGTH - 1, HEADS, -1)
    assert 0.1 < (heads == 0).all(axis=-1).mean() < 0.4


@pytest.mark.parametrize("name", EXPANDED)
def test_the_first_position_may_be_the_baseline(name):
    query, value, mask = arrays()
    layer = built(recurrences.RECURRENCES[name](mask_first=True))
    check_baseline(layer, query[:, :1], value, mask)


def test_an_empty_pair_takes_its_part_of_the_first_softmax():
    """All energies are 0: every real position and the pair have equal weights."""
    query, value, mask = arrays()
    scores = scores_of(built("expanded_head"), 0 * query, value, value_mask=mask)
    expected = mask / (mask.sum(-1, keepdims=True) + 1)
    expected = np.broadcast_to(expected[:, None], scores[:, :, 0].shape)
    np.testing.assert_allclose(scores[:, :, 0], expected, atol=1e-6)
