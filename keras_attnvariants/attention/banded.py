"""Mixing neighbouring positions with fixed weights, at linear cost."""

import numpy as np
from keras import ops

from keras_attnvariants.backend import at_least
from keras_attnvariants.backend import at_most

# Positions that are mixed by one small matrix product. Longer blocks waste work
# on the zeros off the band, shorter ones on the overlap of their windows.
BLOCK = 64


def banded_mix(values, kernel: np.ndarray, first: int):
    """Weighted sums of neighbours: a convolution with one fixed kernel per head.

    `mixed[b, i, h] = sum_tap kernel[tap, h] * values[b, i + first + tap, h]`,
    positions outside the sequence counting as 0. The sequence is cut into blocks,
    each of which is multiplied with the same small banded matrix, so that time
    and memory grow linearly with length, at the speed of matrix products.

    Args:
        values: `[B, L, H, D]`.
        kernel: `[taps, H]`, float64 on the host.
        first: relative position of the first tap; it and the last one are such
            that the taps include relative position 0 (`first <= 0`).

    Returns:
        `[B, L, H, D]`, in the dtype of `values`.
    """
    batch, length, heads, width = ops.shape(values)
    span = len(kernel) - 1
    largest = max(BLOCK, span)
    size = at_least(at_most(length, largest), max(span, 1))
    count = -(-length // size)
    left, right = -first, (count + 1) * size - length + first
    padded = ops.pad(values, ((0, 0), (left, right), (0, 0), (0, 0)))
    blocks = ops.reshape(padded, (batch, count + 1, size, heads, width))
    # `ops.slice` and not indexing, whose gradient is several times as slow.
    block = ops.slice(blocks, (0, 0, 0, 0, 0), (batch, count, size, heads, width))
    overlap = ops.slice(blocks, (0, 1, 0, 0, 0), (batch, count, span, heads, width))
    windows = ops.concatenate([block, overlap], axis=2)
    band = ops.convert_to_tensor(block_band(kernel, largest))  # [H, largest, …]
    band = ops.cast(band[:, :size, : size + span], values.dtype)
    mixed = ops.einsum("hiw,bnwhd->bnihd", band, windows)
    mixed = ops.reshape(mixed, (batch, count * size, heads, width))
    return ops.slice(mixed, (0, 0, 0, 0), (batch, length, heads, width))


def block_band(kernel: np.ndarray, size: int) -> np.ndarray:
    """Float32 `[H, size, size + taps - 1]`: row `i` holds the taps from column `i`."""
    taps, heads = kernel.shape
    band = np.zeros((heads, size, size + taps - 1), "float32")
    rows = np.arange(size)
    for tap in range(taps):
        band[:, rows, rows + tap] = kernel[tap][:, None]
    return band


def dense_band(kernel: np.ndarray, first: int, length):
    """The whole matrix: float32 `[H, L, L]` with the weight of `j` for `i`."""
    taps = len(kernel)
    relative = ops.arange(length)[None, :] - ops.arange(length)[:, None] - first
    inside = ops.logical_and(relative >= 0, relative < taps)
    table = ops.convert_to_tensor(kernel.astype("float32"))
    weights = ops.take(table, ops.clip(relative, 0, taps - 1), axis=0)  # [L, L, H]
    return ops.transpose(ops.where(inside[..., None], weights, 0.0), (2, 0, 1))
