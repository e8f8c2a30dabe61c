"""Caches: each hypothesis reads its own part of what all of them wrote."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.attention.cache import KeyValueCache
from keras_attnvariants.attention.cache import RingCache
from keras_attnvariants.attention.cache import with_common_histories
from keras_attnvariants.decoding.step_model import reorder
from tests.attention.conformance import to_numpy

BATCH, BEAMS, HEADS, SLOTS = 2, 3, 2, 5


def keys_at(position):
    """A number for each sentence, head and hypothesis: `[B, H, K, 1]`."""
    shape = (BATCH, HEADS, BEAMS, 1)
    numbers = 100 * (position + 1) + np.arange(np.prod(shape)).reshape(shape)
    return numbers.astype("float32")


def cache_of(cls=KeyValueCache):
    return cls(HEADS, key_dim=1, value_dim=1, dtype="float32")


def histories(cache, state, position):
    """The keys that each hypothesis sees: for each `(b, h, k)`, those by position."""
    key, value, mask, positions = map(to_numpy, cache.read(state, position))
    np.testing.assert_array_equal(value, -key)
    seen = {}
    for b, h, k in np.ndindex(BATCH, HEADS, BEAMS):
        entries = np.flatnonzero(mask[b, 0, k])
        seen[b, h, k] = {int(positions[s]): float(key[b, h, s, 0]) for s in entries}
    return seen


def walk(cache, steps, parents):
    """Writes and reorders, and does the same to a plain list of each hypothesis."""
    state = cache.initial(BATCH, BEAMS, SLOTS)
    expected = {index: {} for index in np.ndindex(BATCH, HEADS, BEAMS)}
    for t in range(steps):
        before, keys = state, keys_at(t)
        key = ops.convert_to_tensor(keys)
        state = cache.write(state, key, -key, t)
        for index, seen in expected.items():
            seen[t] = float(keys[index][0])
        yield t, state, expected
        if t in parents:
            rows = np.array(parents[t])
            state = reorder(state, before, ops.convert_to_tensor(rows, "int32"))
            expected = {
                (b, h, k): dict(expected[b, h, rows[b, k]]) for b, h, k in expected
            }


PARENTS = {1: [[2, 2, 0], [0, 1, 2]], 2: [[1, 0, 0], [2, 2, 2]], 5: [[0, 0, 1]] * 2}


def test_hypotheses_see_their_own_past():
    cache = cache_of()
    for t, state, expected in walk(cache, SLOTS, PARENTS):
        assert histories(cache, state, t) == expected


def test_caches_of_one_size_have_one_history():
    slots = SLOTS, SLOTS, SLOTS - 1
    caches = [cache_of(cls) for cls in (KeyValueCache, RingCache, RingCache)]
    pairs = list(zip(caches, slots, strict=True))
    states = [cache.initial(BATCH, BEAMS, size) for cache, size in pairs]
    key = ops.convert_to_tensor(keys_at(0))
    alone = [
        cache.write(state, key, -key, 0)
        for cache, state in zip(caches, states, strict=True)
    ]
    after = with_common_histories(alone)
    histories = [state["history"] for state in after]
    assert histories[0] is histories[1] and histories[0] is not histories[2]
    for history, own in zip(histories, alone, strict=True):
        np.testing.assert_array_equal(to_numpy(history), to_numpy(own["history"]))
    found = reorder(after, states, ops.zeros((BATCH, BEAMS), "int32"))
    assert found[0]["history"] is found[1]["history"]
    assert not to_numpy(found[0]["history"])[:, :, 1:].any()


def test_a_ring_forgets_what_is_too_old():
    cache = cache_of(RingCache)
    for t, state, expected in walk(cache, 3 * SLOTS + 1, PARENTS):
        recent = {
            index: {at: key for at, key in seen.items() if at > t - SLOTS}
            for index, seen in expected.items()
        }
        assert histories(cache, state, t) == recent


def test_keys_and_values_stay_where_they_were_written():
    """A search reorders only masks."""
    state = cache_of().initial(BATCH, BEAMS, SLOTS)
    assert set(state) == {"history", SHARED}
    shapes = keras.tree.map_structure(lambda leaf: tuple(leaf.shape), state)
    assert shapes["history"] == (BATCH, BEAMS, SLOTS * BEAMS)
    assert shapes[SHARED]["key"] == (BATCH, HEADS, SLOTS * BEAMS, 1)


def test_weights_by_slot_are_those_of_the_own_entries():
    cache = cache_of()
    state = cache.initial(BATCH, BEAMS, SLOTS)
    weights = np.random.default_rng(0).random((BATCH, HEADS, BEAMS, SLOTS, BEAMS))
    flat = ops.convert_to_tensor(weights.reshape(BATCH, HEADS, BEAMS, SLOTS * BEAMS))
    found = to_numpy(cache.by_slot(state, flat))
    np.testing.assert_allclose(found, weights.sum(-1), rtol=1e-6)


def test_a_position_without_a_slot_is_refused():
    cache = cache_of()
    assert cache.slot(SLOTS - 1, SLOTS) == SLOTS - 1
    with pytest.raises(ValueError, match=f"below {SLOTS}, .*Received: {SLOTS}"):
        cache.slot(SLOTS, SLOTS)
    assert cache_of(RingCache).slot(SLOTS, SLOTS) == 0
