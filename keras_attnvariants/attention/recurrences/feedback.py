"""Recurrences that add to the energies what the previous position gave.

`alpha_i = softmax(e_i + feedback(state_{i-1}))`: the query of the paper's Eq. 2 to 4
is a projection of its input *and* of the previous context or weights, which makes the
energies a sum of two parts. The first is known for all positions at once; the scan
adds the second, with everything but the state multiplied out beforehand.
"""

import dataclasses
import math

import keras
from keras import ops

from keras_attnvariants.attention.heads import split_heads
from keras_attnvariants.attention.recurrences.base import Recurrence
from keras_attnvariants.attention.recurrences.base import energies
from keras_attnvariants.attention.recurrences.base import flat_projection
from keras_attnvariants.attention.recurrences.base import head_projection
from keras_attnvariants.attention.recurrences.base import mix
from keras_attnvariants.attention.recurrences.base import scan_time
from keras_attnvariants.attention.recurrences.base import source_mask
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import masked_softmax


@dataclasses.dataclass(frozen=True)
class Feedback(Recurrence):
    """Base class: the state enters the next energies as a sum.

    Dropout falls on the weights that form the output; the state is computed from
    the whole weights.
    """

    def feedback(self, layer, state, memory):
        """What is added to the energies, float32 `[B, K, H, S]`."""
        raise NotImplementedError

    def update(self, state, weights, memory):
        """The state after a position with these weights."""
        raise NotImplementedError

    def advance(self, layer, inputs, state, memory):
        """The weights of one position `[B, K, H, S]`, and the state after it."""
        logits = inputs["energies"] + self.feedback(layer, state, memory)
        weights = masked_softmax(logits, inputs["mask"])
        return weights, self.update(state, weights, memory)

    def attend(self, layer, q, memory, masks, training):
        inputs = {"energies": energies(q, memory)}
        batch, length, _, source_length = ops.shape(inputs["energies"])
        inputs["mask"] = ops.broadcast_to(
            masks.combined(length, source_length)[:, :, None],
            (batch, length, 1, source_length),
        )

        def body(state, inputs):
            return self.advance(layer, inputs, state, memory)[::-1]

        state = self.initial_state(layer, batch, 1, memory)
        weights = scan_time(body, state, inputs)
        return mix(layer.drop(weights, training), memory["value"]), weights

    def step(self, layer, q, position, state, memory):
        inputs = {"energies": energies(q, memory), "mask": source_mask(memory)}
        weights, state = self.advance(layer, inputs, state, memory)
        return mix(weights, memory["value"]), weights, state


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class PreviousContext(Feedback):
    """The query is a projection of its input and of the head's last context (Eq. 2).

    `q_i = [s_i ; c_{i-1}] W`. State: the contexts, `[B, K, H, D]`.
    """

    def layers(self, layer, width):
        # W's rows for the context, applied to the keys: k . (c W) = (k W^T) . c.
        sizes = (layer.head_dim, layer.head_key_dim)
        equation = "btho,hio->bthi"
        return {"query": head_projection(layer, "query", equation, sizes, before=width)}

    def prepare(self, layer, memory):
        return {"context_key": layer.recurrent["query"](memory["key"] * layer.scale)}

    def initial_state(self, layer, batch, beams, memory):
        shape = (batch, beams, layer.num_heads, layer.head_dim)
        return {"context": ops.zeros(shape, layer.compute_dtype)}

    def feedback(self, layer, state, memory):
        return energies(state["context"], {"key": memory["context_key"]})

    def update(self, state, weights, memory):
        return {"context": mix(weights, memory["value"])}

    def attend(self, layer, q, memory, masks, training):
        length, dim = memory["value"].shape[1], layer.head_dim
        if length is None or length > 2 * dim:
            return super().attend(layer, q, memory, masks, training)
        # What a context adds to energies is what its values add, mixed: with that
        # multiplied out, the scan needs one product instead of two.
        value, key = memory["value"], memory["context_key"]
        memory = {**memory, "pairs": ops.einsum("bshd,bjhd->bhsj", value, key)}
        return MixedFeedback().attend(layer, q, memory, masks, training)


@dataclasses.dataclass(frozen=True)
class WeightsFeedback(Feedback):
    """Base class: the state are weights, float32 `[B, K, H, S]`."""

    def initial_state(self, layer, batch, beams, memory):
        length = ops.shape(memory["mask"])[1]
        return {"weights": ops.zeros((batch, beams, layer.num_heads, length))}


@dataclasses.dataclass(frozen=True)
class MixedFeedback(WeightsFeedback):
    """The last weights mix what each source position adds to the energies.

    `pairs` of the memory, `[B, H, S, S]`, has what the first position adds to the
    energy of the second.
    """

    def feedback(self, layer, state, memory):
        pairs = memory["pairs"]
        weights = ops.cast(state["weights"], pairs.dtype)
        return ops.cast(ops.einsum("bkhs,bhsj->bkhj", weights, pairs), "float32")

    def update(self, state, weights, memory):
        return {"weights": weights}


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class PreviousWeights(WeightsFeedback):
    """The query for a key is projected with the last weight of that key (Eq. 3).

    `q_ij = [s_i ; alpha_{i-1,j}] W`.
    """

    def layers(self, layer, width):
        units = layer.num_heads * layer.head_key_dim
        return {"query": flat_projection(layer, "query", 1, units, before=width)}

    def prepare(self, layer, memory):
        # How much a weight of 1 adds to the energy of each key.
        keys = memory["key"]
        row = layer.recurrent["query"](ops.ones((1, 1), keys.dtype)) * layer.scale
        row = split_heads(row, layer.num_heads)[0]  # [H, D]
        return {"gain": ops.cast(ops.einsum("bshd,hd->bhs", keys, row), "float32")}

    def feedback(self, layer, state, memory):
        return memory["gain"][:, None] * state["weights"]

    def update(self, state, weights, memory):
        return {"weights": weights}


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class AccumulatedWeights(PreviousWeights):
    """The same with the sum of all weights that a key had so far (Eq. 4)."""

    def update(self, state, weights, memory):
        return {"weights": state["weights"] + weights}


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class SubtractedWeights(WeightsFeedback):
    """The weights that a key had so far lower its energy (Eq. 10).

    `z_i = e_i - rate / sqrt(key_dim) * sum of alpha before i`.

    Args:
        rate: the paper's lambda; 0 is plain attention.

    Raises:
        ValueError: `rate` is negative or not finite.
    """

    rate: float = 0.5

    def __post_init__(self):
        if not 0 <= self.rate < math.inf:
            raise ValueError(f"`rate` must be at least 0. Received: {self.rate}")

    def feedback(self, layer, state, memory):
        return -self.rate * layer.scale * state["weights"]

    def update(self, state, weights, memory):
        return {"weights": state["weights"] + weights}
