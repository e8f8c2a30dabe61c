"""Accumulated energies: a linear recurrence.

`z_i = rate e_i + C z_{i-1}` with the same `C` at every position. Rows of `C` have few
nonzero entries, so a scan that adds neighbours is faster than matrix products.
"""

import dataclasses
import functools
import operator
from typing import ClassVar

import keras
from keras import ops

from keras_attnvariants.attention.recurrences.base import Energies
from keras_attnvariants.attention.recurrences.base import Recurrence
from keras_attnvariants.attention.recurrences.base import RecurrentLayer
from keras_attnvariants.attention.recurrences.base import average
from keras_attnvariants.attention.recurrences.base import scan_time
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.backend import section
from keras_attnvariants.backend import with_gradient
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

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

    refused: ClassVar[dict[str, str]] = dict.fromkeys(
        ("attention_mask", "use_causal_mask"),
        "smoothed energies are averages over neighbouring source positions",
    )
    keeps: ClassVar[str] = "energies"

    rate: float = 0.5
    radius: int = 5
    renormalize: bool = False
    start: str = "zeros"

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"`rate` must be in (0, 1]. Received: {self.rate}")
        check_integer("radius", self.radius, minimum=0)
        check_choice("start", self.start, STARTS)

    def prepare(self, layer: RecurrentLayer, memory: State) -> State:
        """The factor of each row of `C`, float32 `[B, 1, 1, S]`, 0 at padding."""
        mask = ops.cast(memory["mask"], "float32")[:, None, None]
        divisor = 2.0 * self.radius + 1.0
        if self.renormalize:
            divisor = ops.maximum(neighbours(mask, self.radius), 1.0)
        return {"smoothing": mask * ((1.0 - self.rate) / divisor)}

    def terms(self, plain: Energies, is_first: Tensor) -> Tensor:
        """The term `rate e_i` of each position, 0 at padding: `[B, H, T, S]`.

        Args:
            plain: energies, and the mask of the source.
            is_first: bool `[T, 1]` or scalar, True at the first position.
        """
        real = plain.memory["mask"][:, None, None]
        energies = ops.where(real, plain.energies, 0.0)
        if self.start == "zeros":
            return self.rate * energies
        return energies * ops.where(is_first, 1.0, self.rate)

    def attend(self, layer: RecurrentLayer, plain: Energies) -> tuple[Tensor, Tensor]:
        is_first = ops.equal(ops.arange(ops.shape(plain.q)[1]), 0)[:, None]
        terms, memory = self.terms(plain, is_first), plain.memory
        total = self.accumulated(terms, memory["smoothing"])
        weights = masked_softmax(total, plain.mask)
        return average(layer.drop(weights, plain.training), memory["value"]), weights

    def accumulated(self, terms: Tensor, smoothing: Tensor) -> Tensor:
        """The smoothed energies of all positions `[B, H, T, S]` from their terms."""
        if self.rate == 1:
            return terms

        def body(state: Tensor, term: Tensor) -> tuple[Tensor, Tensor]:
            total = term + smoothing * neighbours(state, self.radius)
            return total, total

        def gradient(given: Tensor, factors: Tensor) -> Tensor:
            def body(later: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
                own = own + neighbours(later, self.radius)
                return own * factors, own

            return scan_time(body, given, given, reverse=True, axis=2)

        return with_gradient(
            scan_time(body, terms, terms, axis=2),
            terms,
            gradient,
            smoothing,
        )

    def step(
        self, layer: RecurrentLayer, plain: Energies, position: Size, state: State
    ) -> tuple[Tensor, Tensor, State]:
        terms, memory = self.terms(plain, ops.equal(position, 0)), plain.memory
        earlier = ops.swapaxes(state["energies"], 1, 2)
        total = terms + memory["smoothing"] * neighbours(earlier, self.radius)
        weights = masked_softmax(total, plain.mask)
        state = {"energies": ops.swapaxes(total, 1, 2)}
        return average(weights, memory["value"]), weights, state


def neighbours(z: Tensor, radius: int) -> Tensor:
    """Sums of `2 radius + 1` entries on the last axis, with 0 beyond its ends."""
    axis = len(z.shape) - 1
    length, width = ops.shape(z)[-1], 2 * radius + 1
    # Sums of `size` entries from each place on; `width` is a sum of powers of 2.
    sums = ops.pad(z, [(0, 0)] * axis + [(radius, radius)])
    parts, done, size = [], 0, 1
    while size <= width:
        if width & size:
            parts.append(section(sums, done, length, axis))
            done += size
        if 2 * size <= width:
            rest = ops.shape(sums)[-1] - size
            sums = section(sums, 0, rest, axis) + section(sums, size, rest, axis)
        size *= 2
    return functools.reduce(operator.add, parts)
