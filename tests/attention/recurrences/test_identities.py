"""What every recurrence leaves as it is in plain attention, and what it adds up to."""

import numpy as np
import pytest

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import recurrences
from tests.attention.conformance import BATCH
from tests.attention.conformance import HEADS
from tests.attention.conformance import LENGTH
from tests.attention.conformance import forward
from tests.attention.conformance import near
from tests.attention.conformance import to_numpy
from tests.attention.recurrences.tools import EXPANDED
from tests.attention.recurrences.tools import NAMES
from tests.attention.recurrences.tools import ONE_BEAM
from tests.attention.recurrences.tools import arrays
from tests.attention.recurrences.tools import built


def scores_of(layer, query, value, **kwargs):
    return to_numpy(
        forward(layer, query, value, return_attention_scores=True, **kwargs)[1]
    )


def without_recurrence(name):
    """The options, or the weights set to 0, that leave plain attention."""
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


@pytest.mark.parametrize("name", EXPANDED)
def test_the_first_position_may_be_the_baseline(name):
    query, value, mask = arrays()
    layer = built(recurrences.RECURRENCES[name](mask_first=True))
    check_baseline(layer, query[:, :1], value, mask)


def check_baseline(layer, query, value, mask):
    plain = DotProductAttention(HEADS)
    plain.build(query.shape, value.shape)
    for mine, theirs in (
        (layer.query_dense, plain.query_dense),
        (layer.key_dense, plain.key_dense),
        (layer.value_dense, plain.value_dense),
        (layer.output_dense, plain.output_dense),
    ):
        theirs.kernel.assign(mine.kernel)
    options = {"value_mask": mask, "return_attention_scores": True}
    found, wanted = (forward(each, query, value, **options) for each in (layer, plain))
    near(to_numpy(found[0]), to_numpy(wanted[0]), 1e-6)
    near(to_numpy(found[1]), to_numpy(wanted[1]), 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_weights_sum_to_one(name):
    query, value, mask = arrays()
    sums = scores_of(built(name), query, value, value_mask=mask).sum(-1)
    if name in EXPANDED:  # the rest is the weight of the extra pair
        assert (sums > 0).all() and (sums < 0.99).any() and (sums <= 1 + 1e-6).all()
    else:
        np.testing.assert_allclose(sums, 1.0, atol=1e-5)


def test_an_empty_pair_takes_its_part_of_the_first_softmax():
    """Energies of 0 as well: every real position and the pair have equal weights."""
    query, value, mask = arrays()
    scores = scores_of(built("expanded_head"), 0 * query, value, value_mask=mask)
    expected = mask / (mask.sum(-1, keepdims=True) + 1)
    expected = np.broadcast_to(expected[:, None], scores[:, :, 0].shape)
    np.testing.assert_allclose(scores[:, :, 0], expected, atol=1e-6)


@pytest.mark.parametrize("name", ["accumulated_weights", "subtracted_weights"])
def test_accumulated_weights_count_the_steps(name):
    query, value, mask = arrays()
    layer = built(name)
    memory = layer.prepare(value, mask)
    state = layer.initial_state(BATCH, ONE_BEAM, LENGTH, memory)
    for i in range(LENGTH):
        _, state = layer.step(query[:, i : i + 1], i, state, memory)
        sums = to_numpy(state["weights"]).sum(-1)
        np.testing.assert_allclose(sums, i + 1.0, rtol=1e-5)
