"""Recurrences that add a function of the previous position to the energies.

`alpha_i = softmax(e_i + feedback(state_{i-1}))`: the query of the paper's Eq. 2 to 4
is a projection of its input *and* of the previous context or weights, so the energies
are a sum of two parts. The first is computed for all positions at once. The scan adds
the second, using products that are computed beforehand.
"""

import dataclasses
import math
from typing import ClassVar

import keras
from keras import ops

from keras_attnvariants.attention.banded import delay
from keras_attnvariants.attention.multi_head import split_heads
from keras_attnvariants.attention.recurrences.base import Energies
from keras_attnvariants.attention.recurrences.base import Recurrence
from keras_attnvariants.attention.recurrences.base import RecurrentLayer
from keras_attnvariants.attention.recurrences.base import average
from keras_attnvariants.attention.recurrences.base import first_state
from keras_attnvariants.attention.recurrences.base import scan_time
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.backend import with_gradient
from keras_attnvariants.backend.softmax import MASKED_LOGIT
from keras_attnvariants.backend.softmax import softmax
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


@dataclasses.dataclass(frozen=True)
class Feedback(Recurrence):
    """Base class: a linear function of the weights so far is added to the energies.

    Dropout applies to the weights that form the output; the state is computed from
    the weights without dropout.

    Class attributes:
        accumulates: whether the state is that of the sum of all previous weights,
            instead of the last ones.
    """

    accumulates: ClassVar[bool] = False

    def state_of(self, weights: Tensor, memory: State) -> State:
        """What the state holds of weights `[B, H, K, S]`; linear."""
        return {"weights": ops.swapaxes(weights, 1, 2)}

    def feedback(self, layer: RecurrentLayer, state: State, memory: State) -> Tensor:
        """What the state adds to the energies, float32 `[B, H, K, S]`; linear."""
        raise NotImplementedError(f"{type(self).__name__} has no `feedback`.")

    # The composition of both, for whole sequences.

    def matrices(self, layer: RecurrentLayer, memory: State) -> State:
        """The tensors that `apply` and `apply_transposed` need."""
        raise NotImplementedError(f"{type(self).__name__} has no `matrices`.")

    def apply(self, matrices: State, weights: Tensor) -> Tensor:
        """What weights `[B, H, T, S]` add to the energies; by default, each its own."""
        return matrices["gain"] * weights

    def apply_transposed(self, matrices: State, gradient: Tensor) -> Tensor:
        """The gradient of weights from that of what they add."""
        return self.apply(matrices, gradient)

    def apply_to_sequence(
        self, layer: RecurrentLayer, matrices: State, memory: State, weights: Tensor
    ) -> Tensor:
        """The same as `apply`, for its gradient with respect to the memory."""
        return self.apply(matrices, weights)

    # Whole sequences

    def attend(self, layer: RecurrentLayer, plain: Energies) -> tuple[Tensor, Tensor]:
        memory = plain.memory
        matrices = self.matrices(layer, memory)
        weights = self.scanned(plain.energies, plain.mask, matrices, plain.training)
        # The same energies once more, with the weights as constants: their gradients
        # are products of whole sequences instead of sums over the scan.
        before = delay(ops.stop_gradient(weights), 1, axis=2)
        if self.accumulates:
            before = ops.cumsum(before, axis=2)
        added = self.apply_to_sequence(layer, matrices, memory, before)
        weights = with_gradient(
            weights,
            plain.energies + added,
            self.gradient_of_energies,
            (weights, matrices),
        )
        return average(layer.drop(weights, plain.training), memory["value"]), weights

    def scanned(
        self, energies: Tensor, mask: Tensor, matrices: State, training: bool | None
    ) -> Tensor:
        """The weights of all positions, float32 `[B, H, T, S]`."""
        # Queries without visible source positions have weights of 0.
        is_open = ops.cast(ops.any(mask, axis=-1, keepdims=True), "float32")
        inputs = {"energies": ops.where(mask, energies, MASKED_LOGIT)}
        is_same_for_all_queries = mask.shape[2] == 1
        if not is_same_for_all_queries:
            shape = (*ops.shape(energies)[:3], 1)
            inputs["is_open"] = ops.broadcast_to(is_open, shape)

        weights = self.scan_weights(inputs, matrices, training)
        return weights * is_open if is_same_for_all_queries else weights

    def scan_weights(
        self, inputs: State, matrices: State, training: bool | None
    ) -> Tensor:
        """The weights `[B, H, T, S]`.

        Args:
            inputs: `energies` `[B, H, T, S]`, those of masked positions far below all
                others, and, if not all queries see any, `is_open` `[B, H, T, 1]`.
            matrices: as returned by `matrices`.
            training: whether the model is trained.
        """
        return self.weights_by_position(inputs, matrices)

    def weights_by_position(
        self, inputs: State, matrices: State, unroll: int = 1
    ) -> Tensor:
        """The same, one position after the other, `unroll` in an iteration."""

        def body(state: Tensor, inputs: State) -> tuple[Tensor, Tensor]:
            total = inputs["energies"] + self.apply(matrices, state)
            weights = softmax(total, axis=-1)
            if "is_open" in inputs:
                weights = weights * inputs["is_open"]
            return (state + weights if self.accumulates else weights), weights

        initial = first_state(inputs["energies"])
        return scan_time(body, initial, inputs, axis=2, unroll=unroll)

    def gradient_of_energies(
        self, gradient: Tensor, saved: tuple[Tensor, State]
    ) -> Tensor:
        """The gradient of the energies, from that of the weights `[B, H, T, S]`."""
        weights, matrices = saved
        inputs = {"weights": weights, "gradient": gradient}
        return self.scan_gradient(inputs, matrices)

    def scan_gradient(self, inputs: State, matrices: State) -> Tensor:
        """The gradient of the energies.

        Args:
            inputs: `weights`, and their `gradient`, `[B, H, T, S]`.
            matrices: as returned by `matrices`.
        """
        return self.gradient_by_position(inputs, matrices)

    def gradient_by_position(
        self, inputs: State, matrices: State, unroll: int = 1
    ) -> Tensor:
        """The same, from the last position to the first, `unroll` in an iteration."""

        def body(state: Tensor, inputs: State) -> tuple[Tensor, Tensor]:
            own = inputs["weights"] * (inputs["gradient"] + state)
            own = own - inputs["weights"] * ops.sum(own, axis=-1, keepdims=True)
            earlier = self.apply_transposed(matrices, own)
            return (state + earlier if self.accumulates else earlier), own

        initial = first_state(inputs["weights"])
        return scan_time(body, initial, inputs, True, axis=2, unroll=unroll)

    # One position at a time

    def update(self, state: State, weights: Tensor, memory: State) -> State:
        """The state after a position with these weights."""
        new = self.state_of(weights, memory)
        if self.accumulates:
            return {name: state[name] + new[name] for name in new}
        return new

    def step(
        self, layer: RecurrentLayer, plain: Energies, position: Size, state: State
    ) -> tuple[Tensor, Tensor, State]:
        memory = plain.memory
        energies = plain.energies + self.feedback(layer, state, memory)
        weights = masked_softmax(energies, plain.mask)
        state = self.update(state, weights, memory)
        return average(weights, memory["value"]), weights, state


@dataclasses.dataclass(frozen=True)
class WeightsFeedback(Feedback):
    """Base class: the state holds weights, float32 `[B, K, H, S]`."""

    def initial_state(
        self, layer: RecurrentLayer, batch: Size, beams: int, memory: State
    ) -> State:
        length = ops.shape(memory["mask"])[1]
        return {"weights": ops.zeros((batch, beams, layer.num_heads, length))}


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class PreviousWeights(WeightsFeedback):
    """The query for a key depends on the previous weight of that key (Eq. 3).

    `q_ij = [s_i ; alpha_{i-1,j}] W`.
    """

    def layers(self, layer: RecurrentLayer) -> dict[str, keras.layers.Layer]:
        units = layer.num_heads * layer.head_key_dim
        return {
            "query": layer.recurrent_dense("query", 1, units, rows_before=layer.width)
        }

    def prepare(self, layer: RecurrentLayer, memory: State) -> State:
        # What a weight of 1 adds to the energy of each key.
        keys = memory["key"]
        row = layer.recurrent["query"](ops.ones((1, 1), keys.dtype)) * layer.scale
        row = split_heads(row, layer.num_heads)[0]  # [H, D]
        return {"gain": ops.cast(ops.einsum("bhsd,hd->bhs", keys, row), "float32")}

    def feedback(self, layer: RecurrentLayer, state: State, memory: State) -> Tensor:
        return memory["gain"][:, :, None] * ops.swapaxes(state["weights"], 1, 2)

    def matrices(self, layer: RecurrentLayer, memory: State) -> State:
        return {"gain": memory["gain"][:, :, None]}


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class AccumulatedWeights(PreviousWeights):
    """The query for a key depends on the sum of its previous weights (Eq. 4)."""

    accumulates: ClassVar[bool] = True


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

    accumulates: ClassVar[bool] = True

    rate: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.rate < math.inf:
            raise ValueError(
                f"`rate` must be finite and at least 0. Received: {self.rate}"
            )

    def feedback(self, layer: RecurrentLayer, state: State, memory: State) -> Tensor:
        gain = -self.rate * layer.scale
        return gain * ops.swapaxes(state["weights"], 1, 2)

    def matrices(self, layer: RecurrentLayer, memory: State) -> State:
        gain = -self.rate * layer.scale
        return {"gain": ops.convert_to_tensor(gain, "float32")}
