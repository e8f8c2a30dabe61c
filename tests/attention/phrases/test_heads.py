"""Groups of heads: their keys and values by position, and their decoding state."""

import pytest
from keras import ops

from keras_attnvariants.attention import Heterogeneous
from keras_attnvariants.attention import Masks
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.attention.banded import ngrams_by_order
from keras_attnvariants.backend import inference_copy
from tests.attention.conformance import near
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


def test_state_is_what_the_equations_need():
    """Lists of keys and values, the previous tokens' keys, the last inputs."""
    batch, beams, slots, head = 2, 5, 9, WIDTH // HEADS
    keys_per_token = {"query_k": 1, "query_k_by_order": 3}
    for scoring in SCORINGS:
        layer = layer_of(Heterogeneous((1, 2, 3)), scoring)
        state = layer.initial_state(batch, beams, slots)
        assert state["inputs"].shape == (batch, beams, 2 * WIDTH)
        (cache,) = state["groups"]
        entries = slots * beams
        assert cache["history"].shape == (batch, beams, entries)
        found = layer.groups[0].cache.read(cache, 0)
        assert found.value.shape == (batch, 3 * HEADS, entries, head)
        if scoring == "conv_kv":
            assert found.key.shape == (batch, 3 * HEADS, entries, head)
            assert "previous" not in cache
            continue
        token = keys_per_token[scoring] * head
        assert found.key.shape == (batch, HEADS, entries, 3 * token)
        assert cache["previous"].shape == (batch, beams, HEADS, 2 * token)


def test_keys_of_another_width():
    layer = PhraseAttention(HEADS, HETEROGENEOUS, key_dim=3, value_dim=5)
    layer.build((None, None, 16), (None, None, 12), (None, None, 10))
    expected = 24 * 16 + 24 * (10 + 20) + 40 * (12 + 24) + 40 * 16
    assert layer.count_params() == expected


@pytest.mark.parametrize("scoring", SCORINGS)
def test_the_cache_lists_the_ngrams_of_a_whole_sentence(scoring):
    """Keys and values written one at a time equal those of the whole sentence."""
    layer, x = layer_of(Heterogeneous((1, 2)), scoring), inputs()
    (heads,) = layer.groups
    grams = ngrams_by_order(ops.convert_to_tensor(x), (1, 2))
    whole = heads.memory(grams, grams, Masks(), 1)
    cache = heads.initial_cache(BATCH, 1, LENGTH)
    for t in range(LENGTH):
        last = {order: gram[:, t : t + 1] for order, gram in grams.items()}
        _, _, cache = heads.extend(cache, last, t)
    listed = heads.cached_memory(cache, LENGTH - 1)
    near(to_numpy(listed["value"]), to_numpy(whole["value"]), 1e-6)
    (keys,) = map(to_numpy, listed["keys"])
    if scoring == "conv_kv":
        near(keys, to_numpy(whole["keys"][0]), 1e-6)
    else:  # the last ones are of the longest n-grams
        bigrams = to_numpy(whole["keys"][1])
        kinds = keys.shape[-1] // bigrams.shape[-1]
        by_kind = keys.reshape(*keys.shape[:3], 2, kinds, -1)[..., -1, :]
        near(by_kind.reshape(bigrams.shape), bigrams, 1e-6)
    seen = to_numpy(listed["mask"])[0].reshape(2, LENGTH)
    assert seen.astype(int).tolist() == [[1] * LENGTH, [0] + [1] * (LENGTH - 1)]


def test_a_position_beyond_the_cache_is_refused():
    (heads,) = layer_of(HETEROGENEOUS).groups
    cache = heads.initial_cache(BATCH, 1, LENGTH)
    grams = {order: ops.zeros((BATCH, 1, order * WIDTH)) for order in (1, 2)}
    with pytest.raises(ValueError, match=f"`position` .*Received: {LENGTH}"):
        heads.extend(cache, grams, LENGTH)


def test_a_step_multiplies_once_for_the_ngrams_of_each_order():
    """In cross-attention with the queries, in self-attention with all projections."""
    layer = layer_of(INTERLEAVED, "query_k")
    copy = inference_copy(layer)
    groups = [group for heads in copy.groups for group in heads.joint_projections()]
    joint = [group[0].joint[tuple(map(id, group))] for group in groups]
    shapes = sorted(tuple(product.kernel.shape) for product in joint)
    queries = [(WIDTH, 3 * WIDTH), (2 * WIDTH, 3 * WIDTH)]
    everything = [(WIDTH, 5 * WIDTH), (2 * WIDTH, 4 * WIDTH)]
    assert shapes == sorted(queries + everything)
    x = ops.convert_to_tensor(inputs(BATCH, 3, WIDTH))
    state = layer.initial_state(BATCH, 3, LENGTH)
    apart, _ = layer.step(x, 0, state)
    at_once, _ = copy.step(x, 0, state)
    near(to_numpy(at_once), to_numpy(apart), 1e-5)
