"""A group of heads of phrase attention: how it scores n-grams, its keys and values.

The inputs of all projections are n-grams: the concatenated tokens of the layer's
inputs. A projection uses as many of the last tokens as it needs, so that a product
computes a convolution. Queries, keys and values are lists with one entry per order.
"""

from collections.abc import Callable
from itertools import product
from typing import Any
from typing import NamedTuple
from typing import TypeAlias

import keras
from keras import ops

from keras_attnvariants.attention.cache import KeyValueCache
from keras_attnvariants.attention.masks import Masks
from keras_attnvariants.attention.multi_head import split_heads
from keras_attnvariants.attention.phrases.ngrams import ngrams
from keras_attnvariants.attention.phrases.ngrams import visible
from keras_attnvariants.attention.phrases.structures import HeadGroup
from keras_attnvariants.backend import section
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# Makes a built dense layer from `(kind, head_dim, input_width)`.
Projection: TypeAlias = Callable[[str, int, int], keras.layers.Dense]


class Widths(NamedTuple):
    """The width of one token of each input."""

    query: int
    key: int
    value: int


class PhraseHeads(keras.layers.Layer):
    """A group of heads with their own projections; subclasses define the scoring.

    Args:
        group: number of heads and their orders.
        query_orders: orders of the query streams.
        widths: widths of the inputs.
        key_dim, value_dim: width of a head's keys (of one token) and values.
        dense: makes a built dense layer from `(name, input_width, units)`.
    """

    def __init__(
        self,
        group: HeadGroup,
        query_orders: tuple[int, ...],
        widths: Widths,
        key_dim: int,
        value_dim: int,
        dense: Callable[[str, int, int], keras.layers.Dense],
        **kwargs: Any,
    ) -> None:
        super().__init__(name=group.name or "heads", **kwargs)
        self.group = group
        self.query_orders = query_orders
        self.widths = widths
        self.key_dim, self.value_dim = key_dim, value_dim

        def projection(
            kind: str, head_dim: int, input_width: int
        ) -> keras.layers.Dense:
            name = f"{group.name}_{kind}" if group.name else kind
            return dense(name, input_width, group.num_heads * head_dim)

        self.make_scoring(projection)
        self.value_denses = [
            projection(f"value_{order}", value_dim, order * widths.value)
            for order in group.orders
        ]
        self.built = True

    # How an n-gram is scored

    # Of each order, how many tokens' keys make the key of an n-gram.
    taps: tuple[int, ...]

    def make_scoring(self, projection: Projection) -> None:
        """Makes the projections of queries and keys, and `taps`.

        Args:
            projection: makes a built dense layer from `(kind, head_dim, input_width)`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not score.")

    def queries(self, grams: Tensor) -> list[Tensor]:
        """Scaled queries of all streams in turn, `[B, M * T, H, …]` for each order.

        Args:
            grams: n-grams of the query, `[B, T, … * width]`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not score.")

    def keys(self, grams: Tensor) -> list[Tensor]:
        """Keys, `[..., H, D]` each, for `[..., … * width]`; some may be the same."""
        raise NotImplementedError(f"{type(self).__name__} does not score.")

    # Whole sequences

    def project(
        self, dense: keras.layers.Dense, grams: Tensor, order: int, width: int
    ) -> Tensor:
        """The last `order` tokens of n-grams, projected: `[..., H, D]`."""
        before = grams.shape[-1] - order * width
        if before:
            axis = len(grams.shape) - 1
            grams = section(grams, before, order * width, axis)
        return split_heads(dense(grams), self.group.num_heads)

    def values(self, grams: Tensor) -> list[Tensor]:
        """Values by order, each `[..., H, D]`, for `[..., … * width]`."""
        return [
            self.project(dense, grams, order, self.widths.value)
            for dense, order in zip(self.value_denses, self.group.orders, strict=True)
        ]

    def energies(self, queries: list[Tensor], keys: list[Tensor]) -> Tensor:
        """`[B, H, M * T, N * S]` from queries, and keys `[B, H, S, …]` by order."""
        blocks = [
            ops.einsum("bhtd,bhsd->bhts", ops.swapaxes(query, 1, 2), key)
            for query, key in zip(queries, keys, strict=True)
        ]
        return blocks[0] if len(blocks) == 1 else ops.concatenate(blocks, axis=-1)

    def memory(
        self, key_grams: Tensor, value_grams: Tensor, masks: Masks, query_length: Size
    ) -> State:
        """Keys, values and mask of n-grams `[B, S, … * width]`.

        Returns:
            `keys`, for each order `[B, H, S, …]`; `values`, one list of the n-grams of
            all orders, `[B, H, N * S, D]`; `mask`, bool `[1|B, 1|T, N * S]`.
        """
        length = ops.shape(value_grams)[1]
        parts = [
            visible(masks, order, query_length, length, self.group.with_missing)
            for order in self.group.orders
        ]
        keys = zip(self.keys(key_grams), self.taps, strict=True)
        values = [ops.swapaxes(value, 1, 2) for value in self.values(value_grams)]
        return {
            "keys": [ops.swapaxes(ngrams(key, taps), 1, 2) for key, taps in keys],
            "values": [ops.concatenate(values, axis=2)],
            "mask": ops.concatenate(parts, axis=-1),
        }

    # One position at a time

    def caches(self, dtype: str) -> list[KeyValueCache]:
        """The keys and values of the n-grams of each order, by their last tokens."""
        heads = self.group.num_heads
        return [
            KeyValueCache(heads, taps * self.key_dim, self.value_dim, dtype)
            for taps in self.taps
        ]

    def initial_cache(
        self, batch: Size, beams: int, max_length: int, dtype: str
    ) -> list[State]:
        """Empty caches by order, and the previous keys that n-grams are made of."""
        states = []
        for cache, taps in zip(self.caches(dtype), self.taps, strict=True):
            state = cache.initial(batch, beams, max_length)
            if taps > 1:
                width = (taps - 1) * self.key_dim
                shape = (batch, beams, self.group.num_heads, width)
                state["previous"] = ops.zeros(shape, dtype)
            states.append(state)
        return states

    def extend(self, states: list[State], grams: Tensor, position: Size) -> list[State]:
        """The caches with n-grams `[B, K, … * width]` that end at a position."""
        caches = self.caches(keras.backend.standardize_dtype(grams.dtype))
        pairs = zip(self.keys(grams), self.values(grams), strict=True)
        extended = []
        for cache, state, (key, value) in zip(caches, states, pairs, strict=True):
            previous = {}
            if "previous" in state:
                key = ops.concatenate([state["previous"], key], axis=-1)
                previous["previous"] = key[..., self.key_dim :]
            key, value = ops.swapaxes(key, 1, 2), ops.swapaxes(value, 1, 2)
            extended.append({**cache.write(state, key, value, position), **previous})
        return extended

    def cached_memory(self, states: list[State], position: Size, dtype: str) -> State:
        """The memory of the positions so far; a query per hypothesis, `[B, K, …]`."""
        caches = self.caches(dtype)
        found = [
            cache.read(state, position)
            for cache, state in zip(caches, states, strict=True)
        ]
        masks = []
        for entries, order in zip(found, self.group.orders, strict=True):
            mask = entries.mask[:, 0]
            if not self.group.with_missing:
                mask = ops.logical_and(mask, entries.positions >= order - 1)
            masks.append(mask)
        return {
            "keys": [entries.key for entries in found],
            "values": [entries.value for entries in found],
            "mask": ops.concatenate(masks, axis=-1),
        }


class ConvKV(PhraseHeads):
    """Keys are convolutions over the tokens of an n-gram (Nguyen and Joty 2018, Eq. 5).

    `(Q W_q) Conv_n(K, W_k)^T / sqrt(d_k)`: plain attention with more keys.
    """

    def make_scoring(self, projection: Projection) -> None:
        self.taps = (1,) * len(self.group.orders)
        self.query_denses = [
            projection(f"query_{order}", self.key_dim, order * self.widths.query)
            for order in self.query_orders
        ]
        self.key_denses = [
            projection(f"key_{order}", self.key_dim, order * self.widths.key)
            for order in self.group.orders
        ]

    def queries(self, grams: Tensor) -> list[Tensor]:
        streams = [
            self.project(dense, grams, order, self.widths.query)
            for dense, order in zip(self.query_denses, self.query_orders, strict=True)
        ]
        queries = ops.concatenate(streams, axis=1) * self.key_dim**-0.5
        return [queries] * len(self.taps)

    def keys(self, grams: Tensor) -> list[Tensor]:
        return [
            self.project(dense, grams, order, self.widths.key)
            for dense, order in zip(self.key_denses, self.group.orders, strict=True)
        ]


class QueryK(PhraseHeads):
    """Queries are kernels that are convolved with keys (Nguyen and Joty 2018, Eq. 6).

    `sum_r (Q W_q[r]) . (K_{t-n+1+r} W_k) / sqrt(n d_k)`: the dot product of a query
    that is `n` times as wide with the concatenated keys of `n` tokens. Each token has
    one key, which all orders share.
    """

    def make_scoring(self, projection: Projection) -> None:
        self.taps = self.group.orders
        # Each pair is the order of a query and the order of the n-grams it scores.
        self.pairs = tuple(product(self.query_orders, self.group.orders))
        self.query_denses = [
            projection(f"query_{m}_{n}", n * self.key_dim, m * self.widths.query)
            for m, n in self.pairs
        ]
        self.make_keys(projection)

    def make_keys(self, projection: Projection) -> None:
        """Makes the projections of keys."""
        self.key_dense = projection("key", self.key_dim, self.widths.key)

    def queries(self, grams: Tensor) -> list[Tensor]:
        streams: dict[int, list[Tensor]] = {n: [] for n in self.group.orders}
        for dense, (m, n) in zip(self.query_denses, self.pairs, strict=True):
            stream = self.project(dense, grams, m, self.widths.query)
            streams[n].append(stream * (n * self.key_dim) ** -0.5)
        return [ops.concatenate(parts, axis=1) for parts in streams.values()]

    def keys(self, grams: Tensor) -> list[Tensor]:
        key = self.project(self.key_dense, grams, 1, self.widths.key)
        return [key] * len(self.taps)


class QueryKByOrder(QueryK):
    """The same, with keys of its own for each order (Nguyen and Joty 2018, Eq. 8).

    A token has the key `K_t W_{k,n}` in n-grams of order `n`. The paper writes this
    form; its numbers of parameters are those of `QueryK`.
    """

    def make_keys(self, projection: Projection) -> None:
        self.key_denses = [
            projection(f"key_{order}", self.key_dim, self.widths.key)
            for order in self.group.orders
        ]

    def keys(self, grams: Tensor) -> list[Tensor]:
        return [
            self.project(dense, grams, 1, self.widths.key) for dense in self.key_denses
        ]


SCORINGS = {"conv_kv": ConvKV, "query_k": QueryK, "query_k_by_order": QueryKByOrder}
