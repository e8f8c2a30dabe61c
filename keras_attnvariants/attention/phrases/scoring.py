"""The two scorings of phrase attention: how a query scores an n-gram."""

from itertools import product

from keras import ops

from keras_attnvariants.attention.phrases.heads import PhraseHeads
from keras_attnvariants.attention.phrases.heads import Projection
from keras_attnvariants.attention.phrases.heads import join_orders
from keras_attnvariants.attention.phrases.ngrams import ngrams
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Tensor


class ConvKV(PhraseHeads):
    """Keys are convolutions over the tokens of an n-gram (Nguyen and Joty 2018, Eq. 5).

    `(Q W_q) Conv_n(K, W_k)^T / sqrt(d_k)`: plain attention with more keys.
    """

    def make_scoring(self, projection: Projection) -> None:
        self.key_orders = len(self.group.orders)
        self.query_denses = [
            projection(f"query_{order}", self.key_dim, order * self.widths.query)
            for order in self.query_orders
        ]
        self.key_denses = [
            projection(f"key_{order}", self.key_dim, order * self.widths.key)
            for order in self.group.orders
        ]

    def queries(self, grams: Tensor) -> NestedTensors:
        streams = [
            self.project(dense, grams, order, self.widths.query)
            for dense, order in zip(self.query_denses, self.query_orders, strict=True)
        ]
        return ops.concatenate(streams, axis=1) * self.key_dim**-0.5

    def keys(self, grams: Tensor) -> list[Tensor]:
        return [
            self.project(dense, grams, order, self.widths.key)
            for dense, order in zip(self.key_denses, self.group.orders, strict=True)
        ]

    def listed_keys(self, keys: Tensor) -> NestedTensors:
        return join_orders(keys)

    def energies(self, queries: NestedTensors, keys: NestedTensors) -> Tensor:
        return ops.einsum("bthd,bshd->bhts", queries, keys)


class QueryK(PhraseHeads):
    """Queries are kernels that are convolved with keys (Nguyen and Joty 2018, Eq. 6).

    `sum_r (Q W_q[r]) . (K_{t-n+1+r} W_k) / sqrt(n d_k)`: the dot product of a query
    that is `n` times as wide with the concatenated keys of `n` tokens. Each token has
    one key, which all orders share.
    """

    def make_scoring(self, projection: Projection) -> None:
        # Each pair is the order of a query and the order of the n-grams it scores.
        self.pairs = tuple(product(self.query_orders, self.group.orders))
        self.query_denses = [
            projection(f"query_{m}_{n}", n * self.key_dim, m * self.widths.query)
            for m, n in self.pairs
        ]
        self.make_keys(projection)

    def make_keys(self, projection: Projection) -> None:
        """Makes the projections of keys."""
        self.key_orders = 1
        self.key_dense = projection("key", self.key_dim, self.widths.key)

    def queries(self, grams: Tensor) -> NestedTensors:
        streams: dict[int, list[Tensor]] = {n: [] for n in self.group.orders}
        for dense, (m, n) in zip(self.query_denses, self.pairs, strict=True):
            stream = self.project(dense, grams, m, self.widths.query)
            streams[n].append(stream * (n * self.key_dim) ** -0.5)
        return [ops.concatenate(parts, axis=1) for parts in streams.values()]

    def keys(self, grams: Tensor) -> list[Tensor]:
        return [self.project(self.key_dense, grams, 1, self.widths.key)]

    def listed_keys(self, keys: Tensor) -> NestedTensors:
        return [ngrams(keys[:, 0], order) for order in self.group.orders]

    def energies(self, queries: NestedTensors, keys: NestedTensors) -> Tensor:
        blocks = [
            ops.einsum("bthd,bshd->bhts", query, key)
            for query, key in zip(queries, keys, strict=True)
        ]
        return ops.concatenate(blocks, axis=-1)


class QueryKByOrder(QueryK):
    """The same, with keys of its own for each order (Nguyen and Joty 2018, Eq. 8).

    A token has the key `K_t W_{k,n}` in n-grams of order `n`. The paper writes this
    form; its numbers of parameters are those of `QueryK`.
    """

    def make_keys(self, projection: Projection) -> None:
        self.key_orders = len(self.group.orders)
        self.key_denses = [
            projection(f"key_{order}", self.key_dim, self.widths.key)
            for order in self.group.orders
        ]

    def keys(self, grams: Tensor) -> list[Tensor]:
        return [
            self.project(dense, grams, 1, self.widths.key) for dense in self.key_denses
        ]

    def listed_keys(self, keys: Tensor) -> NestedTensors:
        orders = enumerate(self.group.orders)
        return [ngrams(keys[:, index], order) for index, order in orders]


SCORINGS = {"conv_kv": ConvKV, "query_k": QueryK, "query_k_by_order": QueryKByOrder}
