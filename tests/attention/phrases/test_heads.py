"""Groups of heads: how they score n-grams, and their keys and values by position."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import Heterogeneous
from keras_attnvariants.attention import Masks
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.attention.phrase import averaged
from keras_attnvariants.attention.phrases.ngrams import ngrams
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import to_numpy
from tests.attention.phrases.tools import BATCH
from tests.attention.phrases.tools import HEADS
from tests.attention.phrases.tools import HETEROGENEOUS
from tests.attention.phrases.tools import INTERLEAVED
from tests.attention.phrases.tools import LENGTH
from tests.attention.phrases.tools import SCORINGS
from tests.attention.phrases.tools import WIDTH
from tests.attention.phrases.tools import inputs
from tests.attention.phrases.tools import layer_of
from tests.attention.phrases.tools import scores_of


def test_state_is_what_the_equations_need():
    """Caches by order, the keys that longer n-grams are made of, the last inputs."""
    batch, beams, slots, orders, head = 2, 5, 9, (1, 2, 3), WIDTH // HEADS
    for scoring in SCORINGS:
        layer = layer_of(Heterogeneous(orders), scoring)
        state = layer.initial_state(batch, beams, slots)
        assert state["inputs"].shape == (batch, beams, 2 * WIDTH)
        (caches,) = state["groups"]
        for cache, order in zip(caches, orders, strict=True):
            taps = 1 if scoring == "conv_kv" else order
            entries = batch, HEADS, slots * beams
            assert cache["shared"]["key"].shape == (*entries, taps * head)
            assert cache["shared"]["value"].shape == (*entries, head)
            previous = (batch, beams, HEADS, (taps - 1) * head) if taps > 1 else None
            assert getattr(cache.get("previous"), "shape", None) == previous


def test_keys_of_another_width():
    layer = PhraseAttention(HEADS, HETEROGENEOUS, key_dim=3, value_dim=5)
    layer.build((None, None, 16), (None, None, 12), (None, None, 10))
    expected = 24 * 16 + 24 * (10 + 20) + 40 * (12 + 24) + 40 * 16
    assert layer.count_params() == expected


@pytest.mark.parametrize("scoring", SCORINGS)
def test_the_cache_lists_the_ngrams_of_a_whole_sentence(scoring):
    """Written one position at a time, keys and values are those of all at once."""
    layer, x = layer_of(Heterogeneous((1, 2)), scoring), inputs()
    (heads,) = layer.groups
    grams = ngrams(ops.convert_to_tensor(x), 2)
    whole = heads.memory(grams, grams, Masks(), 1)
    cache = heads.initial_cache(BATCH, 1, LENGTH, "float32")
    for t in range(LENGTH):
        cache = heads.extend(cache, grams[:, t : t + 1], t)
    listed = heads.cached_memory(cache, LENGTH - 1)
    values = ops.concatenate(listed["values"], axis=2)
    near(to_numpy(values), to_numpy(whole["values"][0]), 1e-6)
    for found, expected in zip(listed["keys"], whole["keys"], strict=True):
        near(to_numpy(found), to_numpy(expected), 1e-6)
    seen = to_numpy(listed["mask"])[0].reshape(2, LENGTH)
    assert seen.astype(int).tolist() == [[1] * LENGTH, [0] + [1] * (LENGTH - 1)]


def test_a_position_beyond_the_cache_is_refused():
    (heads,) = layer_of(HETEROGENEOUS).groups
    cache = heads.initial_cache(BATCH, 1, LENGTH, "float32")
    with pytest.raises(ValueError, match=f"`position` .*Received: {LENGTH}"):
        heads.extend(cache, ops.zeros((BATCH, 1, 2 * WIDTH)), LENGTH)


def test_averages_over_several_lists_are_those_over_one():
    rng = np.random.default_rng(0)
    weights, values = normal(rng, 2, 3, 4, 5), normal(rng, 2, 3, 5, 6)
    weights, values = map(ops.convert_to_tensor, (weights, values))
    parts = [values[:, :, :2], values[:, :, 2:]]
    whole, found = (averaged(weights, given) for given in ([values], parts))
    near(to_numpy(found), to_numpy(whole), 1e-6)


@pytest.mark.parametrize("scoring, ratio", [("conv_kv", 1.0), ("query_k", 0.5**0.5)])
def test_bigrams_that_ignore_a_token_are_unigrams(scoring, ratio):
    """Up to the scale, which for kernels of two taps is smaller."""
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
    """There is none at the first position, and the second depends on the first."""
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
