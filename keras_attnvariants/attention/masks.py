"""The masks of one attention call and their combination."""

from typing import NamedTuple

from keras import ops

from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor


class Masks(NamedTuple):
    """The masks of one call; `None` masks nothing.

    Attributes:
        query: bool `[B, T]`, True at real query positions.
        key: bool `[B, S]`, True at real key positions.
        attention: bool `[B, T, S]` or `[T, S]`, an arbitrary pattern.
        causal: whether query `i` attends only to keys `j <= i`.
    """

    query: Tensor | None = None
    key: Tensor | None = None
    attention: Tensor | None = None
    causal: bool = False

    def combined(self, query_length: Size, key_length: Size) -> Tensor | None:
        """Which keys each query attends to: bool `[1|B, 1|T, S]`, or `None` for all."""
        mask = None if self.key is None else ops.cast(self.key, "bool")[:, None, :]
        if self.attention is not None:
            pattern = ops.cast(self.attention, "bool")
            mask = both(mask, pattern if len(pattern.shape) == 3 else pattern[None])
        if self.causal:
            mask = both(mask, causal_pattern(query_length, key_length)[None])
        return mask

    def refuse_patterns(self, name: str, reason: str) -> None:
        """Raises `ValueError` if the masks exclude more than padding.

        Args:
            name: name of the layer that cannot honour a pattern.
            reason: why it cannot.
        """
        if self.attention is None and not self.causal:
            return
        raise ValueError(
            f"{name} cannot honour `attention_mask` or `use_causal_mask`: {reason}. "
            f"Use `value_mask` for padding. Received: attention_mask={self.attention}, "
            f"use_causal_mask={self.causal}"
        )


def causal_pattern(query_length: Size, key_length: Size) -> Tensor:
    """Bool `[T, S]`, True where `j <= i`."""
    return ops.arange(key_length)[None, :] <= ops.arange(query_length)[:, None]


def near(
    query_positions: Tensor, key_positions: Tensor, first: int, last: int
) -> Tensor:
    """Bool `[T, S]`, True where the key is `first` to `last` positions later.

    Args:
        query_positions: int32 `[T]`.
        key_positions: int32 `[S]`.
        first, last: distances in tokens, negative to the left.
    """
    distance = key_positions[None, :] - query_positions[:, None]
    return ops.logical_and(distance >= first, distance <= last)


def both(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """The conjunction of two masks, either of which may be `None`."""
    if first is None:
        return second
    if second is None:
        return first
    return ops.logical_and(ops.cast(first, "bool"), ops.cast(second, "bool"))


def zero_masked(x: Tensor, mask: Tensor | None, axis: int = 1) -> Tensor:
    """`x` with 0 where `mask` `[B, L]` is False.

    Args:
        x: `[B, ..., L, ...]`.
        mask: bool, or `None` for no change.
        axis: the axis `L` of `x`.
    """
    if mask is None:
        return x
    before, after = [None] * (axis - 1), [None] * (len(x.shape) - axis - 1)
    mask = ops.cast(mask, "bool")[(slice(None), *before, slice(None), *after)]
    return ops.where(mask, x, ops.zeros((), dtype=x.dtype))


def mask_or_ones(mask: Tensor | None, sequence: Tensor) -> Tensor:
    """The bool mask `[B, S]` of a sequence `[B, S, ...]`; all True if it is `None`."""
    if mask is None:
        return ops.ones(ops.shape(sequence)[:2], "bool")
    return ops.cast(mask, "bool")
