"""Operations on neighbouring positions, at a cost linear in length.

The n-gram at position `t` covers the tokens `t - n + 1` to `t`. A causal mask is
therefore the same for every order `n`.
"""

from collections.abc import Iterable

import numpy as np
from keras import ops

from keras_attnvariants.attention.calls import Masks
from keras_attnvariants.attention.calls import causal_pattern
from keras_attnvariants.backend import at_least
from keras_attnvariants.backend import at_most
from keras_attnvariants.backend import section
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor

# Positions in one block. Longer blocks waste work on zeros outside the band, shorter
# ones on overlapping windows.
BLOCK = 64


def convolve_bands(values: Tensor, kernel: np.ndarray, first: int) -> Tensor:
    """Weighted sums of neighbours: a convolution with one fixed kernel per head.

    `result[b, i, h] = sum_tap kernel[tap, h] * values[b, i + first + tap, h]`,
    where positions outside the sequence count as 0. The sequence is cut into blocks,
    and each block is multiplied by the same small banded matrix. Time and memory are
    therefore linear in length, and the operations are fast matrix products.

    Args:
        values: `[B, L, H, D]`.
        kernel: `[taps, H]`, a NumPy array, used in float32.
        first: relative position of the first tap, `<= 0`. The taps must include
            relative position 0.

    Returns:
        `[B, L, H, D]`, in the dtype of `values`.
    """
    length = ops.shape(values)[1]
    span = len(kernel) - 1
    size = block_size(length, span)
    windows = block_windows(values, first, span, size)
    band = block_band(kernel, max(BLOCK, span))
    band = ops.cast(band[:, :size, : size + span], values.dtype)
    blocks = ops.einsum("hiw,bnwhd->bnihd", band, windows)
    return join_blocks(blocks, length)


def block_size(length: Size, span: int) -> Size:
    """Length of the blocks for windows of `span + 1` positions."""
    return at_least(at_most(length, max(BLOCK, span)), max(span, 1))


def block_windows(x: Tensor, first: int, span: int, size: Size) -> Tensor:
    """Cuts a sequence into overlapping blocks that hold the windows of positions.

    The window of position `i` of a block is its entries `i` to `i + span`.

    Args:
        x: `[B, L, ...]`.
        first: relative position of the first neighbour in a window, `<= 0`.
        span: distance from the first to the last neighbour.
        size: number of positions per block, at least `span`; see `block_size`.

    Returns:
        `[B, blocks, size + span, ...]`, 0 outside the sequence.
    """
    batch, length, *inner = ops.shape(x)
    count = -(-length // size)
    left, right = -first, (count + 1) * size - length + first
    padded = ops.pad(x, ((0, 0), (left, right), *[(0, 0)] * len(inner)))
    blocks = ops.reshape(padded, (batch, count + 1, size, *inner))
    overlap = section(section(blocks, 1, count, axis=1), 0, span, axis=2)
    return ops.concatenate([section(blocks, 0, count, axis=1), overlap], axis=2)


def join_blocks(blocks: Tensor, length: Size) -> Tensor:
    """Joins results by block: `[B, blocks, size, ...]` to `[B, length, ...]`."""
    batch, count, size, *inner = ops.shape(blocks)
    joined = ops.reshape(blocks, (batch, count * size, *inner))
    return section(joined, 0, length, axis=1)


def pair_sums(k: Tensor, v: Tensor) -> Tensor:
    """Sums outer products over positions: `[..., S, H, D]` to `[..., H, D, E]`."""
    return ops.einsum("...shd,...she->...hde", k, v)


def causal_sums(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Sums the values up to each position, weighted by `q . k`.

    Within a block of positions, queries are multiplied with keys. All previous blocks
    contribute one sum of products of keys and values.

    Args:
        q: `[B, T, H, D]`.
        k: `[B, S, H, D]`.
        v: `[B, S, H, E]`.

    Returns:
        `[B, T, H, E]`.
    """
    length = ops.shape(q)[1]
    size = block_size(length, 0)
    if q.shape[1] is None or q.shape[1] != k.shape[1]:
        # As many keys as queries: no query attends to later keys.
        padding = [(0, 0), (0, length), (0, 0), (0, 0)]
        k, v = (section(ops.pad(x, padding), 0, length, axis=1) for x in (k, v))
    q, k, v = (block_windows(x, 0, 0, size) for x in (q, k, v))
    weights = ops.einsum("bnthd,bnshd->bnhts", q, k)
    weights = ops.where(causal_pattern(size, size), weights, 0.0)
    before = delay(ops.cumsum(pair_sums(k, v), axis=1), 1)
    sums = ops.einsum("bnhts,bnshe->bnthe", weights, v)
    return join_blocks(sums + ops.einsum("bnthd,bnhde->bnthe", q, before), length)


def delay(x: Tensor, distance: int, axis: int = 1) -> Tensor:
    """Shifts `x` along an axis to positions `distance` later, at the same length.

    A negative distance shifts to earlier positions. New entries are 0 or False.
    """
    if distance == 0:
        return x
    axis %= len(x.shape)
    before, after = max(distance, 0), max(-distance, 0)
    padding = [(0, 0)] * len(x.shape)
    padding[axis] = (before, after)
    return section(ops.pad(x, padding), after, ops.shape(x)[axis], axis)


def block_band(kernel: np.ndarray, size: Size) -> Tensor:
    """Float32 `[H, size, size + taps - 1]`: the taps begin at column `i` of row `i`.

    It is computed from the kernel, so graphs do not hold the whole band. The taps are
    padded with zeros to one entry more than a row, and repeated. Each row therefore
    holds them one column later than the row before.
    """
    taps, heads = kernel.shape
    width = size + taps - 1
    period = ops.pad(np.float32(kernel).T, ((0, 0), (0, size)))  # [H, width + 1]
    stream = ops.tile(period, (1, size))[:, : size * width]
    return ops.reshape(stream, (heads, size, width))


def dense_band(kernel: np.ndarray, first: int, length: Size) -> Tensor:
    """The full matrix, float32 `[H, L, L]`; row `i` has the weights of position `i`."""
    return section(block_band(kernel, length), -first, length, axis=2)


def ngrams(x: Tensor, order: int) -> Tensor:
    """The concatenated tokens of every n-gram, oldest first.

    Args:
        x: `[B, L, ..., D]`.
        order: number of tokens `n`.

    Returns:
        `[B, L, ..., n * D]`; tokens before the sequence are 0.
    """
    if order == 1:
        return x
    length = ops.shape(x)[1]
    padded = ops.pad(x, [(0, 0), (order - 1, 0), *[(0, 0)] * (len(x.shape) - 2)])
    copies = [section(padded, start, length, axis=1) for start in range(order - 1)]
    return ops.concatenate([*copies, x], axis=-1)


def ngrams_by_order(x: Tensor, orders: Iterable[int]) -> dict[int, Tensor]:
    """The n-grams `[B, L, n * D]` of a sequence `[B, L, D]`, by order `n`.

    Order 1 is always among them.
    """
    return {order: ngrams(x, order) for order in {1, *orders}}


def last_ngrams(window: Tensor, width: int) -> dict[int, Tensor]:
    """The n-grams `[B, K, n * D]` at the end of a window, by order `n`.

    Args:
        window: consecutive tokens `[B, K, order * D]`, oldest first.
        width: the width `D` of a token.
    """
    total = window.shape[-1]
    order = total // width
    starts = {n: total - n * width for n in range(1, order)}
    found = {n: section(window, at, n * width, axis=2) for n, at in starts.items()}
    return found | {order: window}


def complete(tokens: Tensor, order: int) -> Tensor:
    """A mask of the n-grams whose tokens are all True in `tokens`, bool `[..., L]`.

    Tokens before the sequence count as False.
    """
    result = tokens
    for distance in range(1, order):
        result = ops.logical_and(result, delay(tokens, distance, axis=-1))
    return result


def visible(
    masks: Masks,
    order: int,
    query_length: Size,
    key_length: Size,
    with_missing: bool = False,
) -> Tensor:
    """A mask of the n-grams that each query attends to.

    A query attends to an n-gram if it may attend to all of its tokens.

    Args:
        masks: which tokens each query attends to.
        order: number of tokens `n`.
        query_length, key_length: the lengths `T` and `S`.
        with_missing: whether n-grams that begin before the sentence are included.
            The last token of an n-gram must always exist.

    Returns:
        Bool `[1|B, 1|T, S]`.
    """
    seen = masks.combined(query_length, key_length)
    if seen is None:
        seen = ops.ones((1, 1, key_length), "bool")
    if not with_missing:
        return complete(seen, order)
    hidden = ops.logical_not(seen)
    if masks.key is not None:  # missing tokens hide nothing
        hidden = ops.logical_and(hidden, ops.cast(masks.key, "bool")[:, None])
    for distance in range(1, order):
        clear = ops.logical_not(delay(hidden, distance, axis=-1))
        seen = ops.logical_and(seen, clear)
    return seen
