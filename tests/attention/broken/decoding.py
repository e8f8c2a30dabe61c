"""Layers whose steps differ from what they compute on whole sequences."""

from dataclasses import replace

import keras
from keras import ops

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import LocalAttention
from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.attention.cache import RingCache
from tests.attention.broken.registry import broken


@broken("decoder", "step_equals_call", num_heads=4)
class WrongFromPositionTen(DotProductAttention):
    """Steps are wrong from position 10 on."""

    def attend_step(self, step):
        factor = ops.where(ops.greater_equal(step.position, 10), 1.1, 1.0)
        query = step.query * ops.cast(factor, step.query.dtype)
        return super().attend_step(replace(step, query=query))


@broken("decoder", "step_equals_call", num_heads=4)
class WrongFromPositionSeventy(DotProductAttention):
    """Steps are wrong from position 70 on."""

    def attend_step(self, step):
        factor = ops.where(ops.greater_equal(step.position, 70), 1.1, 1.0)
        query = step.query * ops.cast(factor, step.query.dtype)
        return super().attend_step(replace(step, query=query))


class ShortRing(RingCache):
    """The oldest entry of the ring is treated as too old."""

    def positions(self, position, slots):
        held = super().positions(position, slots)
        return ops.where(held == position - slots + 1, held - 1, held)


@broken("decoder", "step_equals_call", num_heads=4)
class ShortWindowInSteps(LocalAttention):
    """The window of a step is one position shorter than that of a whole sequence."""

    cache_type = ShortRing


class LateRing(RingCache):
    """Writes into the wrong slot after position 64."""

    def slot(self, position, slots):
        late = ops.cast(ops.greater(position, 64), "int32")
        return (position + late) % slots


@broken("decoder", "step_equals_call", num_heads=4)
class WrapsWronglyAfter64(LocalAttention):
    """The ring of past positions wraps around at the wrong place after position 64."""

    cache_type = LateRing


@broken("decoder", "step_equals_call", num_heads=4)
class SharesWhatIsReordered(DotProductAttention):
    """State of one hypothesis is kept as if all of its sentence shared it."""

    def initial_state(self, *arguments, **options):
        return {SHARED: super().initial_state(*arguments, **options)}

    def attend_step(self, step):
        found = super().attend_step(replace(step, state=step.state[SHARED]))
        return *found[:2], {SHARED: found[2]}


@broken("cross", "step_equals_call", num_heads=4)
class OneQueryForAllBeams(DotProductAttention):
    """All hypotheses attend with the query of the first."""

    def attend_step(self, step):
        return super().attend_step(replace(step, query=step.query[:, :1]))


@broken("decoder", "step_equals_call", num_heads=4)
class GrowingState(DotProductAttention):
    """The state has another shape after every step."""

    def initial_state(self, batch, beams, *arguments, **options):
        state = super().initial_state(batch, beams, *arguments, **options)
        return {**state, "seen": ops.zeros((batch, beams, 1))}

    def attend_step(self, step):
        state, seen = dict(step.state), step.state["seen"]
        del state["seen"]
        found = super().attend_step(replace(step, state=state))
        seen = ops.concatenate([seen, seen[..., :1]], axis=-1)
        return *found[:2], {**found[2], "seen": seen}


@broken(
    "cross",
    "step_equals_call",
    dtype="mixed_bfloat16",
    num_heads=4,
    recurrence="accumulated_weights",
)
class RunningSumInHalfPrecision(RecurrentCrossAttention):
    """A sum over all positions so far is rounded to half precision at every step."""

    def attend_step(self, step):
        context, weights, state = super().attend_step(step)
        half = keras.tree.map_structure(lambda x: ops.cast(x, "bfloat16"), state)
        return context, weights, keras.tree.map_structure(as_float32, half)


def as_float32(x):
    return ops.cast(x, "float32")


@broken("decoder", "a_step_costs_the_same_at_any_length", num_heads=4)
class KeepsEveryPosition(DotProductAttention):
    """The state grows with the length in a layer that is said to be linear."""

    is_linear = True
