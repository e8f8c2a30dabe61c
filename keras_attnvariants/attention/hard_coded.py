"""Hard-coded Gaussian self-attention (You, Sun and Iyyer 2020).

A head attends at a fixed distance from its own position: its weights are a normal
density around `position + offset`, cut off at the borders of the sentence and
not renormalized. There are no learned queries and keys, and the weighted sum is a
convolution with a constant kernel, at a cost linear in length. Cross-attention has the
same offsets and the same density; see `hard_coded_cross`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_attnvariants.attention.banded import convolve_bands
from keras_attnvariants.attention.banded import dense_band
from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Masks
from keras_attnvariants.attention.calls import Step
from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.attention.multi_head import MultiHeadBase
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
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
        tiled = tile("offsets", offsets, num_heads)
        self.offsets = tuple(int(offset) for offset in tiled)
        if self.offsets != tiled:
            raise ValueError(
                f"`offsets` must be whole numbers of tokens. Received: {offsets}"
            )
        # JSON needs Python numbers instead of NumPy numbers.
        self.standard_deviation = np.asarray(standard_deviation, "float64").tolist()
        self.deviations = tile("standard_deviation", standard_deviation, num_heads)
        for deviation in self.deviations:
            check_positive("standard_deviation", deviation)
        self.threshold = threshold
        self.reach = REACH[self.compute_dtype]

    @property
    def radius(self) -> int:
        """The distance from a head's centre up to which weights are computed."""
        return math.ceil(self.reach * max(self.deviations))

    def round_as(self, dtype: str) -> None:
        self.reach = REACH[dtype]

    def density(self, distance: Any, xp: Any = np) -> Any:
        """Weights `[..., H]` at signed distances `[..., H]` from the centres.

        Args:
            distance: an array, or a float32 tensor.
            xp: `numpy` for arrays, which computes in float64; `keras.ops` for tensors.
        """
        deviation = np.asarray(self.deviations, "float64" if xp is np else "float32")
        weights = xp.exp(-0.5 * xp.square(distance / deviation))
        weights = weights / (deviation * math.sqrt(2 * math.pi))
        weights = xp.where(xp.abs(distance) <= self.radius, weights, 0.0)
        return xp.where(weights >= self.threshold, weights, 0.0)

    def values(self, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """Projected values by head, `[B, S, H, D]`, 0 at masked positions."""
        return zero_masked(self.split(self.value_dense(value)), mask)

    def masked_matrix(self, weights: Tensor, masks: Masks, batch: Size) -> Tensor:
        """The weights `[H, T, S]` for all sentences, `[B, H, T, S]`, 0 if masked."""
        shape = (batch, *ops.shape(weights))
        return ops.broadcast_to(masks.applied_to(weights), shape)


def tile(name: str, given: Any, num_heads: int) -> tuple[float, ...]:
    """A number or a sequence of numbers, repeated until there is one per head.

    Raises:
        ValueError: the number of values does not divide `num_heads`.
    """
    values = tuple(np.ravel(given).tolist())
    if not values or num_heads % len(values):
        raise ValueError(
            f"The length of `{name}` must divide num_heads={num_heads}. "
            f"Received: {values}"
        )
    return values * (num_heads // len(values))


IMPLEMENTATIONS = ("gaussian", "conv", "index")


@register_attention(
    paper=PAPER,
    examples=(
        {"num_heads": 4, "offsets": (-1, 1)},
        {"num_heads": 4, "offsets": (-1, 0), "implementation": "conv"},
        {"num_heads": 4, "offsets": (-1, 0), "implementation": "index"},
        {"num_heads": 4, "offsets": (-2, 0, 1, 3), "standard_deviation": 0.5},
    ),
)
class HardCodedAttention(GaussianAttention):
    """Hard-coded Gaussian self-attention (You et al. 2020, Eq. 1 and 2).

    In a head with offset `a`, the weight of position `j` for position `i` is
    `phi(j - (i + a))`, where `phi` is the normal density. Only the projections of
    values and outputs are learned. Weights are not renormalized at borders, at
    padding, or where a causal mask cuts them off.

    Args:
        num_heads: number of heads `H`.
        offsets: distance, in tokens, of each head's centre, tiled over heads.
            The paper uses `(-1, 1)` in encoders and `(-1, 0)` in decoders.
        implementation: `"gaussian"`, the whole density; `"conv"`, only a window
            around the centre; `"index"`, only the centre, with weight 1.
        window: odd width of the `"conv"` window, in tokens.
        standard_deviation, threshold, value_dim, use_bias, initializers, regularizers
            and constraints: as in `GaussianAttention`.

    An `attention_mask` sets weights to 0 and requires the full matrix; everything else
    is linear in length. A `key` is refused because there are no keys.

    Raises:
        ValueError: `offsets` cannot be tiled, `window` is even, the
            implementation is unknown, or query and value have different lengths.

    Example:

    >>> import numpy as np
    >>> layer = HardCodedAttention(num_heads=2, offsets=(-1, 1))
    >>> x = np.ones((1, 3, 8), "float32")
    >>> _, scores = layer(x, x, return_attention_scores=True)
    >>> [round(float(w), 3) for w in scores[0, 1, 0]]  # head 1: offset 1
    [0.242, 0.399, 0.242]
    """

    roles = frozenset({"encoder", "decoder"})
    refused = {"key": "it has no keys"}

    def __init__(
        self,
        num_heads: int,
        offsets: Sequence[int] = (-1, 1),
        implementation: str = "gaussian",
        window: int = 3,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, offsets, **kwargs)
        if check_integer("window", window) % 2 == 0:
            raise ValueError(f"`window` must be odd. Received: {window}")
        self.implementation = check_choice(
            "implementation", implementation, IMPLEMENTATIONS
        )
        self.window = window

    @property
    def radius(self) -> int:
        radii = {"gaussian": super().radius, "conv": self.window // 2, "index": 0}
        return radii[self.implementation]

    def density(self, distance: Any, xp: Any = np) -> Any:
        if self.implementation == "index":
            return (distance == 0).astype("float64")
        return super().density(distance, xp)

    def kernel(self, causal: bool) -> tuple[np.ndarray, int]:
        """Float32 weights `[taps, H]` by relative position, and the first position."""
        first = min(*self.offsets, self.radius) - self.radius
        last = 0 if causal else max(*self.offsets, -self.radius) + self.radius
        relative = np.arange(first, last + 1)
        weights = self.density(relative[:, None] - np.asarray(self.offsets))
        return weights.astype("float32"), first

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        masks = call.masks
        values = self.values(call.value, masks.key)
        kernel, first = self.kernel(masks.causal)
        weights = None
        if call.return_scores or masks.attention is not None:
            batch, length = ops.shape(values)[:2]
            band = dense_band(kernel, first, length)
            weights = self.masked_matrix(band, masks._replace(causal=False), batch)
        if masks.attention is None:
            return convolve_bands(values, kernel, first), weights
        context = ops.einsum("bhts,bshd->bthd", ops.cast(weights, values.dtype), values)
        return context, weights

    def initial_state(
        self, batch: Size, beams: int, max_length: int, memory: Memory = None
    ) -> State:
        """The last values, oldest first: `[B, K, H * D]` each."""
        kernel, _ = self.kernel(causal=True)
        shape = (batch, beams, self.num_heads * self.head_dim)
        empty = ops.zeros(shape, self.compute_dtype)
        return {"values": (empty,) * (len(kernel) - 1)}

    def attend_step(self, step: Step) -> tuple[Tensor, Tensor | None, State]:
        new = self.value_dense(step.query)
        values = (*step.state["values"], new)  # [B, K, H * D] each
        kernel, first = self.kernel(causal=True)
        per_channel = np.repeat(kernel, self.head_dim, axis=1)  # [taps, H * D]
        context = sum(
            value * ops.cast(weights, value.dtype)
            for weights, value in zip(per_channel, values, strict=True)
            if weights.any()
        )
        scores = self.step_scores(step, kernel, first)
        return self.split(context), scores, {"values": values[1:]}

    def step_scores(self, step: Step, kernel: np.ndarray, first: int) -> Tensor:
        """Float32 weights `[B, K, H, slots]`, 0 for slots before the sentence."""
        exists = ops.arange(first, 1) + step.position >= 0
        scores = ops.where(exists, kernel.T, 0.0)  # [H, slots]
        shape = (*ops.shape(step.query)[:2], *ops.shape(scores))
        return ops.broadcast_to(scores, shape)
