"""N-grams of a sequence: concatenated tokens, and which of them a query attends to.

The n-gram at position `t` is the one that ends there. It covers the tokens `t - n + 1`
to `t`, so that a causal mask is the same for every order.
"""

from collections.abc import Iterable

from keras import ops

from keras_attnvariants.attention.banded import delay
from keras_attnvariants.attention.calls import Masks
from keras_attnvariants.backend import section
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor


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
    """The n-grams `[B, L, n * D]` of a sequence `[B, L, D]`, of orders `n` and 1."""
    return {order: ngrams(x, order) for order in {1, *orders}}


def last_ngrams(window: Tensor, width: int) -> dict[int, Tensor]:
    """The n-grams that end with a window, `[B, K, n * D]`, of all orders `n`.

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
    """Where all tokens of an n-gram are True: bool, like `tokens` `[..., L]`.

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
    """Which n-grams each query attends to.

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
