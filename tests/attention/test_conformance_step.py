"""Every variant: one position at a time equals the whole sequence at once."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants import backend
from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.decoding.states import reorder
from tests.attention.conformance import BATCH
from tests.attention.conformance import HEADS
from tests.attention.conformance import LENGTH
from tests.attention.conformance import WIDTH
from tests.attention.conformance import Case
from tests.attention.conformance import built
from tests.attention.conformance import cases
from tests.attention.conformance import cases_and_modes
from tests.attention.conformance import inputs
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import to_numpy

BEAMS = 3
STEPS = 9  # longer than the reach of a ring buffer, so that it wraps around
MAX_LENGTH = 12
REORDER_AT = 5
STEPPED = ("decoder", "cross")


def whole(case, layer, queries, value, value_mask):
    """`call` on all hypotheses `[B, K, T, width]`: output and scores."""
    flat = queries.reshape(BATCH * BEAMS, STEPS, WIDTH)
    masks = {}
    if case.role == "cross":
        value = np.repeat(value, BEAMS, axis=0)
        masks = {"value_mask": np.repeat(value_mask, BEAMS, axis=0)}
    output = case.forward(
        layer, flat, value, return_attention_scores=case.has_scores, **masks
    )
    output, scores = output if case.has_scores else (output, np.zeros((len(flat), 0)))
    return (
        to_numpy(ops.cast(output, "float32")).reshape(queries.shape),
        to_numpy(scores).reshape(BATCH, BEAMS, *scores.shape[1:]),
    )


def start(case, layer, value, value_mask):
    memory = None
    if case.role == "cross":
        memory = layer.prepare(ops.convert_to_tensor(value), value_mask)
        for leaf in keras.tree.flatten(memory):
            assert leaf.shape[0] == BATCH
    return memory, layer.initial_state(BATCH, BEAMS, MAX_LENGTH, memory=memory)


def keeps_every_position(layer):
    """Whether the state of self-attention is as long as the target."""
    short, long = (layer.initial_state(1, 1, length) for length in (4, 5))
    pairs = zip(*map(keras.tree.flatten, (short, long)), strict=True)
    return any(one.shape != other.shape for one, other in pairs)


def by_slot(case, scores):
    """Scores `[..., blocks * STEPS]` of `call`, as `step` lists them."""
    blocks = scores.reshape(*scores.shape[:-1], case.score_blocks, STEPS)
    blocks = np.pad(blocks, [(0, 0)] * (blocks.ndim - 1) + [(0, MAX_LENGTH - STEPS)])
    return blocks.reshape(*scores.shape[:-1], -1)


def check_state(state, after):
    """What a loop needs: the same structure, shapes and dtypes, `[B, K, ...]`."""
    keras.tree.assert_same_structure(state, after)
    leaves = keras.tree.flatten_with_path(state)
    for (path, first), second in zip(leaves, keras.tree.flatten(after), strict=True):
        lead = (BATCH,) if SHARED in path else (BATCH, BEAMS)
        assert first.shape[: len(lead)] == lead
        assert (first.shape, first.dtype) == (second.shape, second.dtype)


def walk(case, layer, step, queries, value, value_mask, beams):
    """Steps through `queries`, reordering the hypotheses on the way."""
    memory, state = start(case, layer, value, value_mask)
    before, outputs, scores = state, [], []
    for position in range(STEPS):
        if position == REORDER_AT:
            state = reorder(state, before, ops.convert_to_tensor(beams, "int32"))
        query = ops.convert_to_tensor(queries[:, :, position])
        position = ops.convert_to_tensor(position, "int32")
        output, after, *weights = step(query, position, state, memory)
        check_state(state, after)
        before, state = state, after
        outputs.append(to_numpy(ops.cast(output, "float32")))
        scores += map(to_numpy, weights)
    return np.stack(outputs, axis=2), scores


def check_walk(case, step):
    layer = built(case)
    rng = np.random.default_rng(11)
    queries = normal(rng, BATCH, BEAMS, STEPS, WIDTH)
    _, value, _, value_mask = inputs(case)
    beams = rng.integers(BEAMS, size=(BATCH, BEAMS))
    stepped, step_scores = walk(case, layer, step, queries, value, value_mask, beams)
    # The hypotheses that exist after reordering, with their own pasts.
    pasts = np.take_along_axis(queries, beams[:, :, None, None], axis=1)
    final = np.concatenate(
        [pasts[:, :, :REORDER_AT], queries[:, :, REORDER_AT:]], axis=2
    )
    before, scores_before = whole(case, layer, queries, value, value_mask)
    after, scores_after = whole(case, layer, final, value, value_mask)
    expected = np.concatenate(
        [before[:, :, :REORDER_AT], after[:, :, REORDER_AT:]], axis=2
    )
    near(stepped, expected, case.tolerance)
    cross = case.role == "cross"
    if not (cross or keeps_every_position(layer)):
        return
    for t, weights in enumerate(step_scores):
        scores = (scores_before if t < REORDER_AT else scores_after)[:, :, :, t]
        near(weights, scores if cross else by_slot(case, scores), case.tolerance)


@cases_and_modes(roles=STEPPED)
def test_step_equals_call(case, mode):
    layer = built(case)

    def step(query, position, state, memory):
        return layer.step(query, position, state, memory, case.has_scores)

    check_walk(case, backend.jit(step) if mode == "xla" else step)


@cases("float32", roles=STEPPED)
def test_step_scores_never_change_the_output(case):
    case.need_scores()
    layer = built(case)
    _, value, _, value_mask = inputs(case)
    memory, state = start(case, layer, value, value_mask)
    query = normal(np.random.default_rng(2), BATCH, BEAMS, WIDTH)
    plain, _ = layer.step(query, 0, state, memory)
    output, _, scores = layer.step(
        query, 0, state, memory, return_attention_scores=True
    )
    np.testing.assert_array_equal(to_numpy(output), to_numpy(plain))
    assert scores.shape[:3] == (BATCH, BEAMS, HEADS)
    assert keras.backend.standardize_dtype(scores.dtype) == "float32"


@cases("float32", roles=("decoder",))
def test_a_position_beyond_the_cache_is_refused(case):
    layer = built(case)
    if not keeps_every_position(layer):
        pytest.skip("keeps as many positions as it looks back")
    _, state = start(case, layer, None, None)
    query = normal(np.random.default_rng(2), BATCH, BEAMS, WIDTH)
    layer.step(query, MAX_LENGTH - 1, state)
    with pytest.raises(ValueError, match=f"`position` .*Received: {MAX_LENGTH}"):
        layer.step(query, MAX_LENGTH, state)


@cases("float32", roles=("cross",))
def test_prepared_padding_is_invisible(case):
    layer = built(case)
    _, value, _, value_mask = inputs(case)
    dirty = np.where(value_mask[..., None], value, 1e4).astype("float32")
    query = normal(np.random.default_rng(3), BATCH, BEAMS, WIDTH)
    outputs = []
    for source in (value, dirty):
        memory, state = start(case, layer, source, value_mask)
        outputs.append(to_numpy(layer.step(query, 4, state, memory)[0]))
    near(outputs[1], outputs[0], 1e-6)


@pytest.mark.parametrize("name", sorted(attention.variants()))
def test_prepare_is_refused_outside_cross_attention(name):
    roles = attention.variants()[name].roles
    if "cross" in roles:
        pytest.skip("does cross-attention")
    layer = built(Case(name, min(roles), 0))
    with pytest.raises(NotImplementedError, match=f"{name} cannot do cross-attention"):
        layer.prepare(np.ones((1, LENGTH, WIDTH), "float32"))


ONLY_CROSS = [
    name for name, known in attention.variants().items() if known.roles == {"cross"}
]


@pytest.mark.parametrize("name", ONLY_CROSS)
def test_cross_attention_alone_does_not_start_without_a_source(name):
    layer = built(Case(name, "cross", 0))
    with pytest.raises(ValueError, match=f"`memory`.*{name}.*Received: None"):
        layer.initial_state(BATCH, BEAMS, MAX_LENGTH)
