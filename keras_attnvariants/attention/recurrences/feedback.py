"""Recurrences that add a function of the previous position to the energies.

`alpha_i = softmax(e_i + feedback(state_{i-1}))`: the query of the paper's Eq. 2 to 4
is a projection of its input *and* of the previous context or weights, so the energies
are a sum of two parts. The first is computed for all positions at once. The scan adds
the second, using products that are computed beforehand.
"""

import dataclasses
import math

import keras
from keras import ops

from keras_attnvariants.attention.multi_head import split_heads
from keras_attnvariants.attention.recurrences.base import Projections
from keras_attnvariants.attention.recurrences.base import Recurrence
from keras_attnvariants.attention.recurrences.base import average
from keras_attnvariants.attention.recurrences.base import products
from keras_attnvariants.attention.recurrences.base import scan_time
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


@dataclasses.dataclass(frozen=True)
class Feedback(Recurrence):
    """Base class: a function of the state is added to the next energies.

    Dropout applies to the weights that form the output; the state is computed from
    the weights without dropout.
    """

    def feedback(self, projections: Projections, state: State, memory: State) -> Tensor:
        """What the state adds to the energies, float32 `[B, K, H, S]`."""
        raise NotImplementedError(f"{type(self).__name__} has no `feedback`.")

    def update(self, state: State, weights: Tensor, memory: State) -> State:
        """The state after a position with these weights."""
        raise NotImplementedError(f"{type(self).__name__} has no `update`.")

    def advance(
        self, projections: Projections, inputs: State, state: State, memory: State
    ) -> tuple[Tensor, State]:
        """The weights of one position `[B, K, H, S]` and the state after it."""
        energies = inputs["energies"] + self.feedback(projections, state, memory)
        weights = masked_softmax(energies, inputs["mask"])
        return weights, self.update(state, weights, memory)

    def attend(
        self,
        projections: Projections,
        q: Tensor,
        energies: Tensor,
        mask: Tensor,
        memory: State,
        training: bool | None,
    ) -> tuple[Tensor, Tensor]:
        batch, length, _, source_length = ops.shape(energies)
        shape = (batch, length, ops.shape(mask)[2], source_length)
        inputs = {"energies": energies, "mask": ops.broadcast_to(mask, shape)}

        def body(state: State, inputs: State) -> tuple[State, Tensor]:
            weights, state = self.advance(projections, inputs, state, memory)
            return state, weights

        state = self.initial_state(projections, batch, 1, memory)
        weights = scan_time(body, state, inputs)
        return average(projections.drop(weights, training), memory["value"]), weights

    def step(
        self,
        projections: Projections,
        q: Tensor,
        energies: Tensor,
        mask: Tensor,
        memory: State,
        position: Size,
        state: State,
    ) -> tuple[Tensor, Tensor, State]:
        inputs = {"energies": energies, "mask": mask}
        weights, state = self.advance(projections, inputs, state, memory)
        return average(weights, memory["value"]), weights, state


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class PreviousContext(Feedback):
    """Queries are projections of the input and of the previous context (Eq. 2).

    `q_i = [s_i ; c_{i-1}] W`. State: the contexts, `[B, K, H, D]`.
    """

    def layers(self, projections: Projections) -> dict[str, keras.layers.Layer]:
        # The rows of W for the context, applied to the keys: k . (c W) = (k W^T) . c.
        sizes = (projections.value_dim, projections.key_dim)
        dense = projections.head_dense(
            "query", "btho,hio->bthi", sizes, rows_before=projections.width
        )
        return {"query": dense}

    def prepare(self, projections: Projections, memory: State) -> State:
        keys = memory["key"] * projections.scale
        return {"context_key": projections.recurrent["query"](keys)}

    def initial_state(
        self, projections: Projections, batch: Size, beams: int, memory: State
    ) -> State:
        shape = (batch, beams, projections.num_heads, projections.value_dim)
        return {"context": ops.zeros(shape, projections.dtype)}

    def feedback(self, projections: Projections, state: State, memory: State) -> Tensor:
        return products(state["context"], memory["context_key"])

    def update(self, state: State, weights: Tensor, memory: State) -> State:
        return {"context": average(weights, memory["value"])}

    def attend(
        self,
        projections: Projections,
        q: Tensor,
        energies: Tensor,
        mask: Tensor,
        memory: State,
        training: bool | None,
    ) -> tuple[Tensor, Tensor]:
        length, dim = memory["value"].shape[1], projections.value_dim
        if length is None or length > 2 * dim:
            return super().attend(projections, q, energies, mask, memory, training)
        # A context is an average of values, so what it adds to the energies is the
        # average of what the values add. This is computed beforehand, and the scan
        # needs one product instead of two.
        value, key = memory["value"], memory["context_key"]
        memory = {**memory, "pairs": ops.einsum("bshd,bjhd->bhsj", value, key)}
        averaged = AveragedFeedback()
        return averaged.attend(projections, q, energies, mask, memory, training)


@dataclasses.dataclass(frozen=True)
class WeightsFeedback(Feedback):
    """Base class: the state holds weights, float32 `[B, K, H, S]`."""

    def initial_state(
        self, projections: Projections, batch: Size, beams: int, memory: State
    ) -> State:
        length = ops.shape(memory["mask"])[1]
        return {"weights": ops.zeros((batch, beams, projections.num_heads, length))}


@dataclasses.dataclass(frozen=True)
class AveragedFeedback(WeightsFeedback):
    """The previous context, in a form that is faster for short sources.

    `pairs` in the memory, `[B, H, S, S]`, holds what each source position adds to the
    energy of each other one; the previous weights average it.
    """

    def feedback(self, projections: Projections, state: State, memory: State) -> Tensor:
        pairs = memory["pairs"]
        weights = ops.cast(state["weights"], pairs.dtype)
        return ops.cast(ops.einsum("bkhs,bhsj->bkhj", weights, pairs), "float32")

    def update(self, state: State, weights: Tensor, memory: State) -> State:
        return {"weights": weights}


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class PreviousWeights(WeightsFeedback):
    """The query for a key depends on the previous weight of that key (Eq. 3).

    `q_ij = [s_i ; alpha_{i-1,j}] W`.
    """

    def layers(self, projections: Projections) -> dict[str, keras.layers.Layer]:
        units = projections.num_heads * projections.key_dim
        return {
            "query": projections.dense("query", 1, units, rows_before=projections.width)
        }

    def prepare(self, projections: Projections, memory: State) -> State:
        # What a weight of 1 adds to the energy of each key.
        keys = memory["key"]
        row = (
            projections.recurrent["query"](ops.ones((1, 1), keys.dtype))
            * projections.scale
        )
        row = split_heads(row, projections.num_heads)[0]  # [H, D]
        return {"gain": ops.cast(ops.einsum("bshd,hd->bhs", keys, row), "float32")}

    def feedback(self, projections: Projections, state: State, memory: State) -> Tensor:
        return memory["gain"][:, None] * state["weights"]

    def update(self, state: State, weights: Tensor, memory: State) -> State:
        return {"weights": weights}


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class AccumulatedWeights(PreviousWeights):
    """The query for a key depends on the sum of its previous weights (Eq. 4)."""

    def update(self, state: State, weights: Tensor, memory: State) -> State:
        return {"weights": state["weights"] + weights}


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class SubtractedWeights(WeightsFeedback):
    """The previous weights of a key lower its energy (Eq. 10).

    `z_i = e_i - rate / sqrt(key_dim) * sum of alpha before i`.

    Args:
        rate: the paper's lambda; 0 is plain attention.

    Raises:
        ValueError: `rate` is negative or not finite.
    """

    rate: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.rate < math.inf:
            raise ValueError(
                f"`rate` must be finite and at least 0. Received: {self.rate}"
            )

    def feedback(self, projections: Projections, state: State, memory: State) -> Tensor:
        return -self.rate * projections.scale * state["weights"]

    def update(self, state: State, weights: Tensor, memory: State) -> State:
        return {"weights": state["weights"] + weights}
