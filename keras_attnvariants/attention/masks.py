"""The masks of one attention call, and how they combine."""

from typing import Any
from typing import NamedTuple

from keras import ops


class Masks(NamedTuple):
    """What a call was told about which positions count; `None` means all.

    Attributes:
        query: bool `[B, T]`, real query positions.
        key: bool `[B, S]`, real key positions.
        attention: bool `[B, T, S]` or `[T, S]`, an arbitrary pattern.
        causal: whether query `i` may only see keys `j <= i`.
    """

    query: Any = None
    key: Any = None
    attention: Any = None
    causal: bool = False

    def combined(self, query_length, key_length):
        """Which key counts for which query: bool `[1|B, 1|T, S]`, or `None`."""
        parts = []
        if self.key is not None:
            parts.append(ops.cast(self.key, "bool")[:, None, :])
        if self.attention is not None:
            pattern = ops.cast(self.attention, "bool")
            parts.append(pattern if len(pattern.shape) == 3 else pattern[None])
        if self.causal:
            parts.append(causal_pattern(query_length, key_length)[None])
        if not parts:
            return None
        mask = parts[0]
        for part in parts[1:]:
            mask = ops.logical_and(mask, part)
        return mask


def causal_pattern(query_length, key_length):
    """Bool `[T, S]`, True where `j <= i`."""
    return ops.arange(key_length)[None, :] <= ops.arange(query_length)[:, None]


def band_pattern(rows, columns, first: int, last: int):
    """Bool `[rows, columns]`, True where `first <= column - row <= last`."""
    relative = ops.arange(columns)[None, :] - ops.arange(rows)[:, None]
    return ops.logical_and(relative >= first, relative <= last)


def both(first, second):
    """The conjunction of two masks, either of which may be `None`."""
    if first is None:
        return second
    if second is None:
        return first
    return ops.logical_and(ops.cast(first, "bool"), ops.cast(second, "bool"))


def zero_masked(x, mask):
    """Rows of `x` `[B, L, ...]` set to 0 where `mask` `[B, L]` is False."""
    if mask is None:
        return x
    mask = ops.cast(mask, "bool")
    while len(mask.shape) < len(x.shape):
        mask = mask[..., None]
    return ops.where(mask, x, ops.zeros((), dtype=x.dtype))
