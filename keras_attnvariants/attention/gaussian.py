"""The base class of hard-coded self- and cross-attention: offsets and the density."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.attention.multi_head import MultiHeadBase
from keras_attnvariants.utils.typing import Tensor

PAPER = "You, Sun and Iyyer 2020"

# Number of standard deviations beyond which the density is below the rounding error of
# the weights, which are float32 in a layer that computes in float64.
REACH = {"float64": 6, "float32": 6, "bfloat16": 4, "float16": 4}


class GaussianAttention(MultiHeadBase):
    """Base class of layers whose weights are a normal density at a fixed distance.

    Args:
        num_heads: number of heads `H`.
        offsets: distance, in tokens, of each head's centre from its position.
            A list shorter than `num_heads` is tiled: `(-1, 1)` for 4 heads is
            `(-1, 1, -1, 1)`.
        standard_deviation: standard deviation of the density, in tokens; one
            number, or a list that is tiled like `offsets`.
        threshold: weights below it are set to 0.
        value_dim, use_bias, initializers, regularizers and constraints: as in
            `MultiHeadBase`.
    """

    is_linear = True

    def __init__(
        self,
        num_heads: int,
        offsets: Sequence[int] = (-1, 1),
        standard_deviation: float | Sequence[float] = 1.0,
        threshold: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, **kwargs)
        tiled = tile("offsets", np.ravel(offsets).tolist(), num_heads)
        self.offsets = tuple(int(offset) for offset in tiled)
        if self.offsets != tiled:
            raise ValueError(
                f"`offsets` must be whole numbers of tokens. Received: {offsets}"
            )
        # JSON needs Python numbers instead of NumPy numbers.
        self.standard_deviation = np.asarray(standard_deviation, "float64").tolist()
        deviations = np.ravel(standard_deviation).tolist()
        self.deviations = tile("standard_deviation", deviations, num_heads)
        if not all(0 < deviation < math.inf for deviation in self.deviations):
            raise ValueError(
                f"`standard_deviation` must be positive. Received: {standard_deviation}"
            )
        self.threshold = threshold
        self.reach = REACH[self.compute_dtype]

    def make_layers(self, widths: Widths) -> None:
        self.head_dim = self.head_width("value_dim", self.value_dim, widths.query)
        self.value_dense = self.head_dense("value", widths.value, self.head_dim)
        self.output_dense = self.dense_output(
            self.num_heads * self.head_dim, widths.query
        )

    @property
    def radius(self) -> int:
        """The distance from a head's centre up to which weights are computed."""
        return math.ceil(self.reach * max(self.deviations))

    def round_as(self, dtype: str) -> None:
        self.reach = REACH[dtype]

    def density(self, distance: np.ndarray) -> np.ndarray:
        """Weights `[..., H]` at signed distances `[..., H]` from the centres."""
        deviation = np.asarray(self.deviations)
        weights = np.exp(-0.5 * (distance / deviation) ** 2)
        weights = weights / (deviation * math.sqrt(2 * math.pi))
        weights = np.where(np.abs(distance) <= self.radius, weights, 0.0)
        return np.where(weights >= self.threshold, weights, 0.0)

    def values(self, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """Projected values by head, `[B, S, H, D]`, 0 at masked positions."""
        return zero_masked(self.split(self.value_dense(value)), mask)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "offsets": list(self.offsets),
            "standard_deviation": self.standard_deviation,
            "threshold": self.threshold,
        }


def tile(name: str, values: Sequence[float], num_heads: int) -> tuple[float, ...]:
    """`values` repeated until there is one per head.

    Raises:
        ValueError: the number of values does not divide `num_heads`.
    """
    values = tuple(values)
    if not values or num_heads % len(values):
        raise ValueError(
            f"The length of `{name}` must divide num_heads={num_heads}. "
            f"Received: {values}"
        )
    return values * (num_heads // len(values))
