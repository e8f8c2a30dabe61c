"""Groups of heads: their keys and values, at once and one position at a time."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import Heterogeneous
from keras_attnvariants.attention import Masks
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.attention.phrases.heads import join_orders
from keras_attnvariants.attention.phrases.ngrams import ngrams
from tests.attention.conformance import near
from tests.attention.conformance import to_numpy
from tests.attention.phrases.tools import BATCH
from tests.attention.phrases.tools import HEADS
from tests.attention.phrases.tools import HETEROGENEOUS
from tests.attention.phrases.tools import LENGTH
from tests.attention.phrases.tools import SCORINGS
from tests.attention.phrases.tools import WIDTH
from tests.attention.phrases.tools import inputs
from tests.attention.phrases.tools import layer_of


def test_state_is_what_the_equations_need():
    """Caches by order, keys only once for `query_k`, and the last inputs."""
    shapes = {}
    for scoring in SCORINGS:
        layer = layer_of(Heterogeneous((1, 2, 3)), scoring)
        state = layer.initial_state(2, 5, 9)
        (cache,) = state.pop("groups")
        shapes[scoring] = {k: v.shape for k, v in (cache | state).items()}
    lead, head = (2, 5), (9, HEADS, WIDTH // HEADS)
    inputs = (*lead, 2 * WIDTH)
    value = (*lead, 3, *head)
    assert shapes == {
        "conv_kv": {"key": (*lead, 3, *head), "value": value, "inputs": inputs},
        "query_k": {"key": (*lead, 1, *head), "value": value, "inputs": inputs},
        "query_k_by_order": {"key": value, "value": value, "inputs": inputs},
    }


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
    keras.tree.assert_same_structure(listed, whole)
    for found, expected in zip(*map(keras.tree.flatten, (listed, whole)), strict=True):
        near(to_numpy(found), to_numpy(expected), 1e-6)
    seen = to_numpy(heads.cached_memory(cache, 2)["mask"]).reshape(2, LENGTH)
    assert seen.astype(int).tolist() == [[1, 1, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]]


def test_a_position_beyond_the_cache_is_refused():
    (heads,) = layer_of(HETEROGENEOUS).groups
    cache = heads.initial_cache(BATCH, 1, LENGTH, "float32")
    with pytest.raises(ValueError, match=f"`position` .*Received: {LENGTH}"):
        heads.extend(cache, ops.zeros((BATCH, 1, 2 * WIDTH)), LENGTH)


def test_orders_are_listed_one_after_the_other():
    x = np.arange(2 * 3).reshape(1, 2, 3, 1, 1)
    found = to_numpy(join_orders(ops.convert_to_tensor(x)))
    assert found.shape == (1, 6, 1, 1)
    assert found.ravel().tolist() == [0, 1, 2, 3, 4, 5]
