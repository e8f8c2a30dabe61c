"""Scorings: the energies of n-grams from queries and keys."""

import numpy as np
import pytest

from tests.attention.conformance import near
from tests.attention.conformance import to_numpy
from tests.attention.phrases.tools import HEADS
from tests.attention.phrases.tools import HETEROGENEOUS
from tests.attention.phrases.tools import INTERLEAVED
from tests.attention.phrases.tools import SCORINGS
from tests.attention.phrases.tools import WIDTH
from tests.attention.phrases.tools import inputs
from tests.attention.phrases.tools import layer_of
from tests.attention.phrases.tools import scores_of


@pytest.mark.parametrize("scoring, ratio", [("conv_kv", 1.0), ("query_k", 0.5**0.5)])
def test_bigrams_that_ignore_a_token_are_unigrams(scoring, ratio):
    """The energies agree up to the scale, which is smaller for kernels of two taps."""
    layer = layer_of(HETEROGENEOUS, scoring)
    named = {w.path.split("/")[-2]: w for w in layer.weights}
    if scoring == "conv_kv":
        old = np.zeros((WIDTH, WIDTH))
        named["key_2"].assign(np.concatenate([old, to_numpy(named["key_1"].value)]))
    else:
        taps = to_numpy(named["query_1_1"].value).reshape(WIDTH, HEADS, -1)
        taps = np.concatenate([0 * taps, taps], axis=-1)
        named["query_1_2"].assign(taps.reshape(WIDTH, -1))
    weights = scores_of(layer, inputs(), inputs())[:, :, :, 0]  # [B, H, T, N, S]
    logits = np.log(weights[..., 1:])
    unigrams, bigrams = logits[..., 0, :], logits[..., 1, :]
    # Logits are known up to a constant, different in every row.
    near(np.diff(bigrams), ratio * np.diff(unigrams), 1e-4)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_phrases_ask_for_two_tokens(scoring):
    """The first position has no phrase, and the second depends on the first."""
    layer, source = layer_of(INTERLEAVED, scoring), inputs(seed=2)
    query = inputs()
    weights = scores_of(layer, query, source)
    assert not weights[:, :, 0, 1].any()
    np.testing.assert_allclose(weights[:, :, 0, 0].sum((-1, -2)), 1.0, atol=1e-5)
    np.testing.assert_allclose(weights[:, :, 1:].sum((-1, -2)), 1.0, atol=1e-5)
    query[:, 0] += 1.0
    moved = np.abs(scores_of(layer, query, source) - weights).max((0, 1, 4, 5))
    assert moved[1, 1] > 1e-3  # the phrase of the first two
    assert moved[1, 0] == moved[2:].max() == 0.0
