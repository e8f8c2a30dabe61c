"""Hard-coded Gaussian cross-attention (You, Sun and Iyyer 2020).

Target position `i` attends to the source around `length_ratio * i`. The windows are
the same for every sentence.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_attnvariants.attention.banded import join_blocks
from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Step
from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.calls import mask_or_ones
from keras_attnvariants.attention.hard_coded import PAPER
from keras_attnvariants.attention.hard_coded import GaussianAttention
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.backend import at_least
from keras_attnvariants.backend import constant
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# Number of target positions that are computed together and share one source window.
BLOCK = 32

# The centres are computed with NumPy in float64, up to this target length.
MAX_TARGET_LENGTH = 65536


@register_attention(
    paper=PAPER,
    examples=(
        {"num_heads": 4, "offsets": (-1, 1)},
        {"num_heads": 4, "offsets": (-1, 0, 1, 2), "length_ratio": 1.431},
        {"num_heads": 4, "length_ratio": 0.963, "floor": False},
    ),
)
class HardCodedCrossAttention(GaussianAttention):
    """Hard-coded Gaussian cross-attention (You et al. 2020, section 3.2).

    In a head with offset `a`, the weight of source position `j` for target position
    `i` is `phi(j - (floor(length_ratio * i) + a))`, where `phi` is the normal density.

    Args:
        num_heads: number of heads `H`.
        offsets: distance, in tokens, of each head's centre, tiled over heads.
        length_ratio: mean source length divided by mean target length in the training
            data, in the model's tokens (the paper's gamma).
        floor: whether the centre is rounded down to a token, as in the paper. The
            paper's released code does not round.
        standard_deviation, threshold, value_dim, use_bias, initializers, regularizers
            and constraints: as in `GaussianAttention`.

    An `attention_mask` or `use_causal_mask` is refused because the whole batch shares
    the windows. A `key` is refused because there are no keys.

    Example:

    >>> import numpy as np
    >>> layer = HardCodedCrossAttention(num_heads=2, length_ratio=0.5)
    >>> layer(np.ones((1, 6, 8), "float32"), np.ones((1, 3, 8), "float32")).shape
    TensorShape([1, 6, 8])
    """

    roles = frozenset({"cross"})
    reads_query = False
    refused = {
        "key": "it has no keys",
        "attention_mask": "its weights are the same for all sentences",
        "use_causal_mask": "its weights are the same for all sentences",
    }

    def __init__(
        self,
        num_heads: int,
        offsets: Sequence[int] = (-1, 1),
        length_ratio: float = 1.0,
        floor: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, offsets, **kwargs)
        self.length_ratio = float(check_positive("length_ratio", length_ratio))
        self.floor = floor

    def make_layers(self, widths: Widths) -> None:
        super().make_layers(widths)
        # Without the small addend, 1.431 * 1000 would be rounded to less than 1431.
        exact = np.arange(MAX_TARGET_LENGTH) * self.length_ratio + 1e-9
        centres = np.floor(exact)
        fractions = np.zeros_like(exact) if self.floor else exact - centres
        self.centres = constant(centres.astype("int32"))
        self.fractions = constant(fractions.astype("float32"))
        self.first = min(*self.offsets, self.radius) - self.radius
        self.last = max(*self.offsets, -self.radius) + self.radius + (not self.floor)

    def attend(self, call: Call) -> tuple[Tensor, Tensor | None]:
        values = self.values(call.value, call.masks.key)
        length, _ = call.lengths
        if isinstance(length, int) and length > MAX_TARGET_LENGTH:
            raise ValueError(
                f"`query` must have at most {MAX_TARGET_LENGTH} positions. "
                f"Received: query.shape={call.query.shape}"
            )
        context = self.average_windows(values, length)
        if not call.return_scores:
            return context, None
        batch, source = ops.shape(values)[:2]
        weights = self.weights_at(
            ops.arange(source)[None, :], ops.arange(length)[:, None]
        )
        weights = ops.transpose(weights, (2, 0, 1))  # [H, T, S]
        return context, self.masked_matrix(weights, call.masks, batch)

    def average_windows(self, values: Tensor, length: Size) -> Tensor:
        """The context `[B, T, H, D]`, a block of target positions at a time."""
        blocks = -(-length // BLOCK)
        target = ops.reshape(ops.arange(blocks * BLOCK), (blocks, BLOCK))
        centre = ops.take(self.centres, target)  # [N, BLOCK]
        start = centre[:, :1] + self.first
        reach = math.ceil(self.length_ratio * BLOCK) + self.last - self.first + 1
        source = start + ops.arange(reach)  # [N, W]
        windows = take_rows(values, source)  # [B, N, W, H, D]
        weights = self.weights_at(source[:, None, :], target[:, :, None])
        weights = ops.cast(weights, values.dtype)  # [N, BLOCK, W, H]
        context = ops.einsum("ntwh,bnwhd->bnthd", weights, windows)
        return join_blocks(context, length)

    def weights_at(self, source: Tensor, target: Tensor) -> Tensor:
        """Float32 density `[..., H]` at source positions for target positions."""
        distance = source - ops.take(self.centres, target)
        distance = ops.cast(distance, "float32") - ops.take(self.fractions, target)
        offsets = np.asarray(self.offsets, "float32")
        return self.density(distance[..., None] - offsets, ops)

    def prepare(self, value: Tensor, value_mask: Tensor | None = None) -> State:
        return {
            "values": self.values(value, value_mask),
            "mask": mask_or_ones(value_mask, value),
        }

    def attend_step(self, step: Step) -> tuple[Tensor, Tensor | None, State]:
        position, mask = step.position, step.memory["mask"]
        reach = ops.arange(self.first, self.last + 1)
        source = ops.take(self.centres, position) + reach
        window = take_rows(step.memory["values"], source[None])[:, 0]  # [B, W, H, D]
        weights = ops.cast(self.weights_at(source, position), window.dtype)
        # All hypotheses of a sentence have the same context.
        context = ops.einsum("wh,bwhd->bhd", weights, window)[:, None]
        if not step.return_scores:
            return context, None, step.state
        batch, length = ops.shape(mask)
        scores = ops.transpose(self.weights_at(ops.arange(length), position))
        scores = ops.where(mask[:, None, None], scores, 0.0)  # [B, 1, H, S]
        shape = (batch, ops.shape(step.query)[1], self.num_heads, length)
        return context, ops.broadcast_to(scores, shape), step.state


def take_rows(values: Tensor, index: Tensor) -> Tensor:
    """Rows `[B, *index.shape, ...]` of `values` `[B, S, ...]`, 0 outside them."""
    batch, length, *rest = ops.shape(values)
    if values.shape[1] == 0:
        return ops.zeros((batch, *ops.shape(index), *rest), values.dtype)
    inside = ops.logical_and(index >= 0, index < length)
    index = ops.clip(index, 0, at_least(length - 1, 0))
    rows = ops.take(values, index, axis=1)
    return ops.where(inside[..., None, None], rows, ops.zeros((), values.dtype))
