"""Accumulated energies: a linear recurrence, computed without a loop.

`z_i = rate e_i + C z_{i-1}` with the same `C` at every position has the solution
`z_i = sum_m C^m rate e_{i-m}`. The sums are computed by doubling: each round doubles
the number of earlier positions that they include.
"""

import dataclasses
import math
from typing import ClassVar

import keras
from keras import ops

from keras_attnvariants.attention.recurrences.base import Projections
from keras_attnvariants.attention.recurrences.base import Recurrence
from keras_attnvariants.attention.recurrences.base import average
from keras_attnvariants.attention.recurrences.base import delayed
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# Terms smaller than this, relative to the largest energy, are left out. They are far
# below the rounding error of float32.
PRECISION = 1e-9

STARTS = ("zeros", "first")


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class AccumulatedEnergies(Recurrence):
    """Energies smoothed over target and source positions (Eq. 9).

    `z_i = rate e_i + (1 - rate) Box z_{i-1}`, `alpha_i = softmax(z_i)`, where `Box`
    is the mean over the `2 radius + 1` source positions around each position. Energies
    of padded source positions count as 0. State: `z`, float32 `[B, K, H, S]`.

    An `attention_mask` or `use_causal_mask` is refused, because the smoothed energy of
    a visible source position would depend on its masked neighbours.

    Args:
        rate: the paper's lambda; 1 is plain attention.
        radius: the paper's k.
        renormalize: whether the mean is over real source positions only. By default
            it is always over `2 radius + 1`, and positions outside the sentence count
            as 0.
        start: `"zeros"`, the energies before the first position are 0; `"first"`,
            `z` at the first position is its energies.

    Raises:
        ValueError: an option is out of range.
    """

    honours_patterns: ClassVar[bool] = False

    rate: float = 0.5
    radius: int = 5
    renormalize: bool = False
    start: str = "zeros"

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"`rate` must be in (0, 1]. Received: {self.rate}")
        check_integer("radius", self.radius, minimum=0)
        check_choice("start", self.start, STARTS)

    def prepare(self, projections: Projections, memory: State) -> State:
        return {"smoothing": self.smoothing(memory["mask"])}

    def smoothing(self, mask: Tensor) -> Tensor:
        """The matrix `C`, float32 `[B, S, S]`, from the mask `[B, S]`."""
        position = ops.arange(ops.shape(mask)[1])
        near = ops.abs(position[:, None] - position[None, :]) <= self.radius
        real = ops.logical_and(mask[:, :, None], mask[:, None, :])
        box = ops.cast(ops.logical_and(near, real), "float32")
        divisor = 2.0 * self.radius + 1.0
        if self.renormalize:
            divisor = ops.maximum(ops.sum(box, axis=-1, keepdims=True), 1.0)
        return box * ((1.0 - self.rate) / divisor)

    def initial_state(
        self, projections: Projections, batch: Size, beams: int, memory: State
    ) -> State:
        length = ops.shape(memory["mask"])[1]
        return {"energies": ops.zeros((batch, beams, projections.num_heads, length))}

    def terms(self, energies: Tensor, memory: State, is_first: Tensor) -> Tensor:
        """The term `rate e_i` of each position, 0 at padding: `[B, H, T, S]`.

        Args:
            energies: float32 `[B, H, T, S]`.
            memory: contains the `mask` of the source.
            is_first: bool `[T, 1]` or scalar, True at the first position.
        """
        energies = ops.where(memory["mask"][:, None, None], energies, 0.0)
        if self.start == "zeros":
            return self.rate * energies
        return energies * ops.where(is_first, 1.0, self.rate)

    def attend(
        self,
        projections: Projections,
        q: Tensor,
        energies: Tensor,
        mask: Tensor,
        memory: State,
        training: bool | None,
    ) -> tuple[Tensor, Tensor]:
        length = ops.shape(q)[1]
        is_first = ops.equal(ops.arange(length), 0)[:, None]
        total = self.terms(energies, memory, is_first)
        smoothing, rounds = memory["smoothing"], self.rounds(length)
        for i in range(rounds):
            total = total + smooth(delayed(total, 2**i, axis=2), smoothing)
            if i + 1 < rounds:
                smoothing = ops.matmul(smoothing, smoothing)
        weights = masked_softmax(total, mask)
        return average(projections.drop(weights, training), memory["value"]), weights

    def rounds(self, length: Size) -> int:
        """The number of doublings that include all terms above `PRECISION`."""
        if self.rate == 1:
            return 0
        terms = math.ceil(math.log(PRECISION) / math.log1p(-self.rate))
        if isinstance(length, int):
            terms = min(terms, length)
        return (max(terms, 1) - 1).bit_length()

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
        terms = self.terms(energies, memory, ops.equal(position, 0))
        earlier = ops.swapaxes(state["energies"], 1, 2)
        total = terms + smooth(earlier, memory["smoothing"])
        weights = masked_softmax(total, mask)
        state = {"energies": ops.swapaxes(total, 1, 2)}
        return average(weights, memory["value"]), weights, state


def smooth(z: Tensor, smoothing: Tensor) -> Tensor:
    """`C z` along the source: `[B, H, T, S]` with `[B, S, S]`."""
    return ops.einsum("bhts,bjs->bhtj", z, smoothing)
