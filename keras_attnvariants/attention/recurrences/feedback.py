"""Recurrences that add a function of the previous position to the energies.

`alpha_i = softmax(e_i + feedback(state_{i-1}))`: the query of the paper's Eq. 2 to 4
is a projection of its input *and* of the previous context or weights, so the energies
are a sum of two parts. The first is computed for all positions at once. The scan adds
the second, using products that are computed beforehand.
"""

import dataclasses
import functools
import math
from typing import ClassVar
from typing import TypeAlias

import keras
from keras import ops

from keras_attnvariants.attention.banded import delay
from keras_attnvariants.attention.multi_head import split_heads
from keras_attnvariants.attention.recurrences.base import Energies
from keras_attnvariants.attention.recurrences.base import Recurrence
from keras_attnvariants.attention.recurrences.base import RecurrentLayer
from keras_attnvariants.attention.recurrences.base import average
from keras_attnvariants.attention.recurrences.base import scan_time
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.backend import with_gradient
from keras_attnvariants.backend.softmax import MASKED_LOGIT
from keras_attnvariants.backend.softmax import softmax
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# The factors of a linear map, or of its transpose.
Factors: TypeAlias = tuple[Tensor, ...]


class Feedback(Recurrence):
    """Base class: a linear function of the weights so far is added to the energies.

    By default, each weight adds to the energy of its own key, and the state holds
    weights. Dropout applies to the weights that form the output; the state is computed
    from the weights without dropout.

    Class attributes:
        accumulates: whether the state depends on the sum of all previous weights,
            instead of the last weights.
    """

    accumulates: ClassVar[bool] = False

    def factors(self, layer: RecurrentLayer, memory: State) -> tuple[Factors, Factors]:
        """The factors of the linear function of weights, and of its transpose."""
        raise NotImplementedError(f"{type(self).__name__} has no `factors`.")

    def apply(self, factors: Factors, weights: Tensor) -> Tensor:
        """The energies that weights `[B, H, T, S]` add, or the transpose of the map."""
        return factors[0] * weights

    # The same function in two parts

    def state_of(self, weights: Tensor, memory: State) -> State:
        """The state after weights `[B, H, K, S]`; linear."""
        return {"weights": ops.swapaxes(weights, 1, 2)}

    def feedback(self, layer: RecurrentLayer, state: State, memory: State) -> Tensor:
        """The energies that a state adds, float32 `[B, H, K, S]`; linear."""
        factors, _ = self.factors(layer, memory)
        return self.apply(factors, ops.swapaxes(state["weights"], 1, 2))

    # Whole sequences

    def attend(self, layer: RecurrentLayer, plain: Energies) -> tuple[Tensor, Tensor]:
        memory = plain.memory
        forward, backward = self.factors(layer, memory)
        weights = self.scan_weights(plain.energies, plain.mask, forward, plain.training)
        # Computes the energies again, with the weights as constants: their gradients
        # are then products of whole sequences instead of sums over the scan.
        before = delay(ops.stop_gradient(weights), 1, axis=2)
        if self.accumulates:
            before = ops.cumsum(before, axis=2)
        added = self.feedback(layer, self.state_of(before, memory), memory)
        weights = with_gradient(
            weights,
            plain.energies + added,
            self.gradient_of_energies,
            (weights, backward),
        )
        return average(layer.drop(weights, plain.training), memory["value"]), weights

    def scan_weights(
        self, energies: Tensor, mask: Tensor, factors: Factors, training: bool | None
    ) -> Tensor:
        """The weights of all positions, float32 `[B, H, T, S]`."""
        inputs = {"energies": ops.where(mask, energies, MASKED_LOGIT)}
        # Queries without visible source positions have weights of 0.
        is_open = ops.cast(ops.any(mask, axis=-1, keepdims=True), "float32")
        if mask.shape[2] == 1:  # the same for all queries
            return self.scan(inputs, factors, bool(training)) * is_open
        shape = (*ops.shape(energies)[:3], 1)
        inputs["is_open"] = ops.broadcast_to(is_open, shape)
        return self.scan(inputs, factors)

    def next_weights(
        self, factors: Factors, state: Tensor, inputs: State
    ) -> tuple[Tensor, Tensor]:
        """The state and the weights `[B, H, 1, S]` of the next position."""
        total = inputs["energies"] + self.apply(factors, state)
        weights = softmax(total)
        if "is_open" in inputs:
            weights = weights * inputs["is_open"]
        return (state + weights if self.accumulates else weights), weights

    def gradient_of_energies(
        self, gradient: Tensor, saved: tuple[Tensor, Factors]
    ) -> Tensor:
        """The gradient of energies, from the gradient of weights `[B, H, T, S]`."""
        weights, factors = saved
        inputs = {"weights": weights, "gradient": gradient}
        return self.scan(inputs, factors, is_training=True, reverse=True)

    def earlier_gradient(
        self, factors: Factors, state: Tensor, inputs: State
    ) -> tuple[Tensor, Tensor]:
        """The gradients of earlier weights and of the energies of a position."""
        own = inputs["weights"] * (inputs["gradient"] + state)
        own = own - inputs["weights"] * ops.sum(own, axis=-1, keepdims=True)
        earlier = self.apply(factors, own)
        return (state + earlier if self.accumulates else earlier), own

    def scan(
        self,
        inputs: State,
        factors: Factors,
        is_training: bool = False,
        reverse: bool = False,
    ) -> Tensor:
        """The weights of all positions `[B, H, T, S]`, or the gradients of energies.

        Args:
            inputs: the inputs of `next_weights` or `earlier_gradient`, tensors
                `[B, H, T, …]` by name.
            factors: factors of the function or of its transpose.
            is_training: whether compiling a program is worth its time.
            reverse: whether gradients are computed, from the last position to the
                first.
        """
        [first, *_] = inputs.values()
        step = self.earlier_gradient if reverse else self.next_weights
        body = functools.partial(step, factors)
        return scan_time(body, first, inputs, reverse, axis=2)

    # One position at a time

    def step(
        self, layer: RecurrentLayer, plain: Energies, position: Size, state: State
    ) -> tuple[Tensor, Tensor, State]:
        memory = plain.memory
        energies = plain.energies + self.feedback(layer, state, memory)
        weights = masked_softmax(energies, plain.mask)
        new = self.state_of(weights, memory)
        if self.accumulates:
            new = {name: state[name] + new[name] for name in new}
        return average(weights, memory["value"]), weights, new


@keras.saving.register_keras_serializable(package=PACKAGE)
class PreviousWeights(Feedback):
    """The query for a key depends on the previous weight of that key (Eq. 3).

    `q_ij = [s_i ; alpha_{i-1,j}] W`.
    """

    def layers(self, layer: RecurrentLayer) -> dict[str, keras.layers.Layer]:
        units = layer.num_heads * layer.head_key_dim
        return {
            "query": layer.recurrent_dense("query", 1, units, rows_before=layer.width)
        }

    def prepare(self, layer: RecurrentLayer, memory: State) -> State:
        # `gain`: the energy that a weight of 1 adds to each key.
        keys = memory["key"]
        row = layer.recurrent["query"](ops.ones((1, 1), keys.dtype)) * layer.scale
        row = split_heads(row, layer.num_heads)[0]  # [H, D]
        return {"gain": ops.cast(ops.einsum("bhsd,hd->bhs", keys, row), "float32")}

    def factors(self, layer: RecurrentLayer, memory: State) -> tuple[Factors, Factors]:
        gain = memory["gain"][:, :, None]
        return (gain,), (gain,)


@keras.saving.register_keras_serializable(package=PACKAGE)
class AccumulatedWeights(PreviousWeights):
    """The query for a key depends on the sum of its previous weights (Eq. 4)."""

    accumulates: ClassVar[bool] = True


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class SubtractedWeights(Feedback):
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

    def factors(self, layer: RecurrentLayer, memory: State) -> tuple[Factors, Factors]:
        gain = ops.convert_to_tensor(-self.rate * layer.scale, "float32")
        return (gain,), (gain,)
