"""A group of heads of phrase attention: its keys, values and decoding state.

The inputs of all projections are n-grams: the concatenated tokens of the layer's
inputs, by order. A product with a matrix is then a convolution.

One matrix product computes all energies, and another one all contexts. The keys and
values of all orders are concatenated along the axis of positions.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TypeAlias

import keras
from keras import ops

from keras_attnvariants.attention.banded import visible
from keras_attnvariants.attention.cache import KeyValueCache
from keras_attnvariants.attention.calls import Masks
from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.multi_head import SoftmaxAttention
from keras_attnvariants.attention.multi_head import heads_first
from keras_attnvariants.attention.multi_head import merge_heads
from keras_attnvariants.attention.multi_head import split_heads
from keras_attnvariants.attention.phrases.structures import HeadGroup
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.backend import project_jointly
from keras_attnvariants.backend import reshape
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# Makes a built dense layer from `(kind, head_dim, input_width)`.
Projection: TypeAlias = Callable[[str, int, int], keras.layers.Dense]

# The order of n-grams, and a projection of such n-grams.
NgramProjection: TypeAlias = tuple[int, keras.layers.Dense]

# N-grams `[B, L, order * width]` by order.
Ngrams: TypeAlias = Mapping[int, Tensor]


class PhraseHeads(keras.layers.Layer):
    """A group of heads with their own projections.

    By default, keys are convolutions over the tokens of an n-gram (Nguyen and Joty
    2018, Eq. 5): `(Q W_q) Conv_n(K, W_k)^T / sqrt(d_k)`, with more keys than plain
    attention. Subclasses score n-grams in other ways.

    Args:
        layer: the attention layer; its options apply to the projections.
        group: number of heads and their orders.
        query_orders: orders of the query streams.
        widths: the width of one token of each input.
        key_dim, value_dim: width of a head's keys (of one token) and values.
    """

    # In a cache, a key consists of the keys of a window of tokens, each of `token_dim`
    # numbers. Either every order has a list of keys, or all share one list.
    window: int
    token_dim: int
    key_lists: int

    def __init__(
        self,
        layer: SoftmaxAttention,
        group: HeadGroup,
        query_orders: tuple[int, ...],
        widths: Widths,
        key_dim: int,
        value_dim: int,
    ) -> None:
        super().__init__(name=group.name or "heads", dtype=layer.dtype_policy)
        self.group = group
        self.query_orders = query_orders
        self.widths = widths
        self.key_dim, self.value_dim = key_dim, value_dim
        self.num_orders = len(group.orders)

        def projection(
            kind: str, head_dim: int, input_width: int
        ) -> keras.layers.Dense:
            name = f"{group.name}_{kind}" if group.name else kind
            return layer.dense(name, input_width, group.num_heads * head_dim)

        self.make_scoring(projection)
        self.value_denses = [
            projection(f"value_{order}", value_dim, order * widths.value)
            for order in group.orders
        ]
        lists = self.key_lists * group.num_heads, self.num_orders * group.num_heads
        sizes = self.window * self.token_dim, value_dim
        self.cache = KeyValueCache(lists[0], *sizes, self.compute_dtype, lists[1])
        self.built = True

    # The scoring of n-grams

    def make_scoring(self, projection: Projection) -> None:
        """Makes the projections of queries and keys, and the sizes of keys.

        Args:
            projection: makes a built dense layer from `(kind, head_dim, input_width)`.
        """
        self.window, self.token_dim = 1, self.key_dim
        self.key_lists = self.num_orders
        self.query_denses = [
            projection(f"query_{order}", self.key_dim, order * self.widths.query)
            for order in self.query_orders
        ]
        self.key_denses = [
            projection(f"key_{order}", self.key_dim, order * self.widths.key)
            for order in self.group.orders
        ]

    # Projections are listed with the order of the n-grams that they read.

    def query_projections(self) -> list[NgramProjection]:
        """The projections of the query's n-grams."""
        return list(zip(self.query_orders, self.query_denses, strict=True))

    def key_projections(self) -> list[NgramProjection]:
        """The projections of the key's n-grams."""
        return list(zip(self.group.orders, self.key_denses, strict=True))

    def value_projections(self) -> list[NgramProjection]:
        """The projections of the value's n-grams."""
        return list(zip(self.group.orders, self.value_denses, strict=True))

    def queries(self, projected: list[Tensor]) -> list[Tensor]:
        """Scaled queries of all streams in turn, `[B, H, M * T, D]` for each order.

        The list has one entry if all orders have the same queries.

        Args:
            projected: the outputs `[B, T, H, D]` of `query_projections`.
        """
        queries = joined(projected, axis=1) * self.key_dim**-0.5
        return [ops.swapaxes(queries, 1, 2)]

    def keys(self, projected: list[Tensor]) -> list[Tensor]:
        """The keys of whole sequences for these queries, `[B, H, S, D]` each.

        Args:
            projected: the outputs `[B, S, H, D]` of `key_projections`.
        """
        return [self.by_head(as_lists(joined(projected), self.key_lists))]

    def queries_of_windows(self, queries: list[Tensor]) -> list[Tensor]:
        """The same queries for the keys of a cache, which all orders may share."""
        return queries

    def joint_projections(self) -> list[tuple[keras.layers.Dense, ...]]:
        """The groups of projections that a decoding step applies to the same inputs."""
        of_query = self.query_projections()
        of_all = of_query + self.key_projections() + self.value_projections()
        found = [*by_order(of_query).values(), *by_order(of_all).values()]
        return [group for group in found if len(group) > 1]

    def project(
        self, projections: list[NgramProjection], grams: Ngrams
    ) -> list[Tensor]:
        """The outputs of projections, `[B, L, H, D]` each."""
        found: dict[keras.layers.Dense, Tensor] = {}
        for order, group in by_order(projections).items():
            found |= zip(group, project_jointly(group, grams[order]), strict=True)
        heads = self.group.num_heads
        return [split_heads(found[dense], heads) for _, dense in projections]

    # Whole sequences

    def project_queries(self, grams: Ngrams) -> list[Tensor]:
        """Projects n-grams at `T` positions to queries, as `queries` returns them."""
        return self.queries(self.project(self.query_projections(), grams))

    def memory(
        self,
        key_grams: Ngrams,
        value_grams: Ngrams,
        masks: Masks,
        query_length: Size,
    ) -> State:
        """The keys and values that `T` queries attend to.

        Returns:
            `keys`, as returned by `keys`; `value` `[B, H, N * S, D]`, the values of all
            orders in turn; `mask`, bool `[1|B, 1|T, N * S]`.
        """
        length = ops.shape(value_grams[1])[1]
        orders, with_missing = self.group.orders, self.group.with_missing
        seen = [visible(masks, n, query_length, length, with_missing) for n in orders]
        keys = self.project(self.key_projections(), key_grams)
        values = self.project(self.value_projections(), value_grams)
        return {
            "keys": self.keys(keys),
            "value": self.by_head(as_lists(joined(values), self.num_orders)),
            "mask": joined(seen),
        }

    def by_head(self, lists: Tensor) -> Tensor:
        """Concatenates lists: `[B, H * N, S, D]` to `[B, H, N * S, D]`."""
        batch, all_lists, length, width = ops.shape(lists)
        heads = self.group.num_heads
        return reshape(lists, (batch, heads, all_lists // heads * length, width))

    def attend(
        self,
        queries: list[Tensor],
        memory: State,
        existing: list[Tensor],
        drop: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Attention of all query streams to the n-grams of a memory.

        Args:
            queries: returned by `project_queries` or `extend`.
            memory: returned by `memory` or `extend`.
            existing: which queries of each query stream exist, bool `[1|B, T]`.
            drop: applies dropout to the weights.

        Returns:
            Contexts `[B, H, M * T, D]` and float32 weights `[B, H, M * T, N * S]`.
        """
        mask = memory["mask"]
        if len(existing) > 1:
            seen = [ops.logical_and(mask, stream[:, :, None]) for stream in existing]
            mask = ops.concatenate(seen, axis=1)  # [1|B, M * T, N * S]
        pairs = zip(queries, memory["keys"], strict=True)
        energies = joined([ops.einsum("bhqd,bhsd->bhqs", q, key) for q, key in pairs])
        batch, heads = ops.shape(energies)[:2]
        rows = len(existing) * ops.shape(existing[0])[1]
        energies = reshape(energies, (batch, heads, rows, ops.shape(mask)[-1]))
        weights = masked_softmax(energies, mask[:, None])
        return ops.matmul(drop(weights), memory["value"]), weights

    # One position at a time

    def initial_cache(self, batch: Size, beams: int, max_length: int) -> State:
        """An empty cache, with zeros as the keys of a window's previous tokens."""
        state = self.cache.initial(batch, beams, max_length)
        if self.window > 1:
            width = (self.window - 1) * self.token_dim
            shape = (batch, beams, self.group.num_heads, width)
            state["previous"] = ops.zeros(shape, self.compute_dtype)
        return state

    def extend(
        self, state: State, grams: Ngrams, position: Size
    ) -> tuple[list[Tensor], State, State]:
        """Adds the n-grams `[B, K, …]` that end at a position to the cache.

        Returns:
            Their queries, the memory that these attend to, and the cache.
        """
        of_query, of_key = self.query_projections(), self.key_projections()
        projections = [*of_query, *of_key, *self.value_projections()]
        projected = iter(self.project(projections, grams))
        queries = self.queries([next(projected) for _ in of_query])
        keys, previous = joined([next(projected) for _ in of_key]), {}
        if self.window > 1:
            keys = ops.concatenate([state["previous"], keys], axis=-1)
            previous["previous"] = keys[..., self.token_dim :]
        values = joined([*projected])
        lists = as_lists(keys, self.key_lists), as_lists(values, self.num_orders)
        state = self.cache.write(state, *lists, position) | previous
        memory = self.cached_memory(state, position)
        return self.queries_of_windows(queries), memory, state

    def cached_memory(self, state: State, position: Size) -> State:
        """The memory of the positions so far; the mask has one row per hypothesis."""
        entries = self.cache.read(state, position)
        mask = entries.mask[:, 0]
        if not self.group.with_missing:
            exist = [entries.positions >= order - 1 for order in self.group.orders]
            mask = joined([ops.logical_and(mask, each) for each in exist])
        keys, value = map(self.by_head, (entries.key, entries.value))
        return {"keys": [keys], "value": value, "mask": mask}


def by_order(
    projections: list[NgramProjection],
) -> dict[int, tuple[keras.layers.Dense, ...]]:
    """The projections of each order."""
    return {
        order: tuple(dense for n, dense in projections if n == order)
        for order, _ in projections
    }


def joined(parts: Sequence[Tensor], axis: int = -1) -> Tensor:
    """Tensors, concatenated along an axis."""
    return parts[0] if len(parts) == 1 else ops.concatenate(parts, axis=axis)


def as_lists(x: Tensor, lists: int) -> Tensor:
    """`[B, L, H, lists * D]` to `[B, H * lists, L, D]`."""
    return heads_first(merge_heads(x), x.shape[2] * lists)
