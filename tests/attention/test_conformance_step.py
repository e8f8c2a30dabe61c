"""Every variant: one position at a time equals the whole sequence at once."""

from dataclasses import dataclass

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants import backend
from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.decoding.step_model import reorder
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
from tests.attention.conformance import need_float32
from tests.attention.conformance import normal
from tests.attention.conformance import to_numpy

BEAMS = 3
MAX_LENGTH = 12
STEPPED = ("decoder", "cross")


@dataclass(frozen=True)
class Walk:
    """Number of decoded positions, and those before which hypotheses are reordered."""

    steps: int
    reorder_at: tuple[int, ...]
    max_length: int

    @property
    def segments(self):
        """The number of reorderings before each position, `[T]`."""
        return np.searchsorted(self.reorder_at, np.arange(self.steps), side="right")

    def histories(self, queries, parents):
        """The hypotheses `[B, K, T, width]` as they are after each reordering."""
        found = [queries]
        for at, rows in zip(self.reorder_at, parents, strict=True):
            past = np.take_along_axis(found[-1], rows[:, :, None, None], axis=1)
            found.append(np.concatenate([past[:, :, :at], queries[:, :, at:]], axis=2))
        return np.stack(found)


# Both are longer than the reach of a ring buffer, so that it wraps around; the
# compiled one is also longer than two blocks of 64 positions.
WALKS = {"eager": Walk(9, (5,), 12), "xla": Walk(132, (5, 66, 129), 134)}


def whole(case, histories, value, value_mask):
    """`call` on all hypotheses `[N, B, K, T, width]`: output and scores."""
    flat = histories.reshape(-1, *histories.shape[-2:])
    options = {"return_attention_scores": case.has_scores}
    if case.role == "cross":
        repeats = len(histories), 1, 1
        value = np.tile(np.repeat(value, BEAMS, axis=0), repeats)
        mask = np.tile(np.repeat(value_mask, BEAMS, axis=0), repeats[:2])
        options["value_mask"] = mask
    output = case.forward(built(case), flat, value, **options)
    output, scores = output if case.has_scores else (output, np.zeros((len(flat), 0)))
    scores = to_numpy(scores)
    return (
        to_numpy(ops.cast(output, "float32")).reshape(histories.shape),
        scores.reshape(*histories.shape[:3], *scores.shape[1:]),
    )


def start(case, value, value_mask, max_length):
    """The memory and the first state."""
    layer, memory = built(case), None
    if case.role == "cross":
        memory = layer.prepare(ops.convert_to_tensor(value), value_mask)
        for leaf in keras.tree.flatten(memory):
            assert leaf.shape[0] == BATCH
    return memory, layer.initial_state(BATCH, BEAMS, max_length, memory=memory)


def keeps_every_position(layer):
    """Whether the state of self-attention is as long as the target."""
    short, long = (layer.initial_state(1, 1, length) for length in (4, 5))
    pairs = zip(*map(keras.tree.flatten, (short, long)), strict=True)
    return any(one.shape != other.shape for one, other in pairs)


def by_slot(case, scores, slots):
    """Scores `[..., blocks * T]` of `call`, as `step` lists them."""
    steps = scores.shape[-1] // case.score_blocks
    blocks = scores.reshape(*scores.shape[:-1], case.score_blocks, steps)
    blocks = np.pad(blocks, [(0, 0)] * (blocks.ndim - 1) + [(0, slots - steps)])
    return blocks.reshape(*scores.shape[:-1], -1)


def check_state(state, after):
    """Asserts the same structure, shapes and dtypes `[B, K, ...]`, as a loop needs."""
    keras.tree.assert_same_structure(state, after)
    leaves = keras.tree.flatten_with_path(state)
    for (path, first), second in zip(leaves, keras.tree.flatten(after), strict=True):
        lead = (BATCH,) if SHARED in path else (BATCH, BEAMS)
        assert first.shape[: len(lead)] == lead
        assert (first.shape, first.dtype) == (second.shape, second.dtype)


def decode(case, walk, step, queries, parents, value, value_mask):
    """Outputs `[B, K, T, width]`, and scores `[B, K, H, T, slots]` if there are any."""
    memory, state = start(case, value, value_mask, walk.max_length)
    before, outputs, scores = state, [], []
    for t in range(walk.steps):
        if t in walk.reorder_at:
            rows = parents[walk.reorder_at.index(t)]
            state = reorder(state, before, ops.convert_to_tensor(rows, "int32"))
        query = ops.convert_to_tensor(queries[:, :, t])
        position = ops.convert_to_tensor(t, "int32")
        output, after, *weights = step(query, position, state, memory)
        check_state(state, after)
        before, state = state, after
        outputs.append(to_numpy(ops.cast(output, "float32")))
        scores += map(to_numpy, weights)
    return np.stack(outputs, axis=2), np.stack(scores, axis=3) if scores else None


def check_walk(case, walk, step):
    """Asserts that steps equal the whole sequence, however hypotheses are reordered."""
    rng = np.random.default_rng(11)
    queries = normal(rng, BATCH, BEAMS, walk.steps, WIDTH)
    parents = rng.integers(BEAMS, size=(len(walk.reorder_at), BATCH, BEAMS))
    _, value, _, value_mask = inputs(case)
    stepped, weights = decode(case, walk, step, queries, parents, value, value_mask)
    histories = walk.histories(queries, parents)
    outputs, scores = whole(case, histories, value, value_mask)
    rows = walk.segments, np.arange(walk.steps)
    near(stepped, at_positions(outputs, 3, *rows), case.tolerance)
    if weights is None:
        return
    need_float32(case, weights)
    if case.role == "cross":
        near(weights, at_positions(scores, 4, *rows), case.tolerance)
    elif keeps_every_position(built(case)):
        scores = by_slot(case, at_positions(scores, 4, *rows), walk.max_length)
        near(weights, scores, case.tolerance)


def at_positions(x, axis, segments, positions):
    """The entries of `[N, ..., T, ...]` of segment `segments[t]` at `t` on `axis`."""
    x = np.moveaxis(x, axis, 1)[segments, positions]  # [T, ...]
    return np.moveaxis(x, 0, axis - 1)


@cases_and_modes(roles=STEPPED)
def test_step_equals_call(case, mode):
    layer = built(case)

    def step(query, position, state, memory):
        return layer.step(query, position, state, memory, case.has_scores)

    check_walk(case, WALKS[mode], backend.jit(step) if mode == "xla" else step)


@cases("float32", roles=STEPPED, one_on_jax=True)
def test_step_scores_never_change_the_output(case):
    case.need_scores()
    layer = built(case)
    _, value, _, value_mask = inputs(case)
    memory, state = start(case, value, value_mask, MAX_LENGTH)
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
    _, state = start(case, None, None, MAX_LENGTH)
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
        memory, state = start(case, source, value_mask, MAX_LENGTH)
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
