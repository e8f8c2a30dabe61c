"""Scores of n-grams in phrase attention (Nguyen and Joty 2018, Eq. 5, 6 and 8)."""

from itertools import product

from keras import ops

from keras_attnvariants.attention.banded import ngrams
from keras_attnvariants.attention.phrases.heads import NgramProjection
from keras_attnvariants.attention.phrases.heads import PhraseHeads
from keras_attnvariants.attention.phrases.heads import Projection
from keras_attnvariants.attention.phrases.heads import joined
from keras_attnvariants.backend import reshape
from keras_attnvariants.utils.typing import Tensor


class ConvKV(PhraseHeads):
    """Keys are convolutions over tokens of n-grams (Nguyen and Joty 2018, Eq. 5)."""


class QueryK(PhraseHeads):
    """Queries are kernels that are convolved with keys (Nguyen and Joty 2018, Eq. 6).

    `sum_r (Q W_q[r]) . (K_{t-n+1+r} W_k) / sqrt(n d_k)`: the dot product of a query
    that is `n` times as wide with the concatenated keys of `n` tokens. Each token has
    one key, which all orders share.

    In a decoding step, all orders attend to the keys of the longest n-grams: the query
    for shorter ones has zeros for the tokens before them.
    """

    def make_scoring(self, projection: Projection) -> None:
        # Each pair is the order of a query and the order of the n-grams it scores.
        self.pairs = tuple(product(self.query_orders, self.group.orders))
        self.query_denses = [
            projection(f"query_{m}_{n}", n * self.key_dim, m * self.widths.query)
            for m, n in self.pairs
        ]
        self.make_keys(projection)
        self.window, self.key_lists = max(self.group.orders), 1
        self.token_dim = len(self.key_projections()) * self.key_dim

    def make_keys(self, projection: Projection) -> None:
        """Makes the projections of keys."""
        self.key_dense = projection("key", self.key_dim, self.widths.key)

    def query_projections(self) -> list[NgramProjection]:
        orders = [order for order, _ in self.pairs]
        return list(zip(orders, self.query_denses, strict=True))

    def key_projections(self) -> list[NgramProjection]:
        return [(1, self.key_dense)]

    def queries(self, projected: list[Tensor]) -> list[Tensor]:
        found = []
        for order in self.group.orders:
            pairs = zip(projected, self.pairs, strict=True)
            streams = joined([query for query, (_, n) in pairs if n == order], axis=1)
            streams = streams * (order * self.key_dim) ** -0.5
            found.append(ops.swapaxes(streams, 1, 2))
        return found

    def keys(self, projected: list[Tensor]) -> list[Tensor]:
        if len(projected) == 1:
            projected = projected * self.num_orders
        pairs = zip(projected, self.group.orders, strict=True)
        return [ops.swapaxes(ngrams(key, order), 1, 2) for key, order in pairs]

    def queries_of_windows(self, queries: list[Tensor]) -> list[Tensor]:
        """`[B, H, M * T * N, D]`, with zeros for keys that an order does not use."""
        padded = [self.pad_query(query, i) for i, query in enumerate(queries)]
        batch, heads, rows, width = ops.shape(padded[0])
        shape = (batch, heads, rows * self.num_orders, width)
        return [reshape(ops.stack(padded, axis=3), shape)]

    def pad_query(self, query: Tensor, index: int) -> Tensor:
        """The query for the order with this index, padded to the width of a key."""
        order, kinds = self.group.orders[index], len(self.key_projections())
        own = index if kinds > 1 else 0
        missing = [(self.window - order, 0), (own, kinds - 1 - own), (0, 0)]
        lead = ops.shape(query)[:3]
        query = reshape(query, (*lead, order, 1, self.key_dim))
        query = ops.pad(query, [(0, 0)] * 3 + missing)
        return reshape(query, (*lead, self.window * self.token_dim))


class QueryKByOrder(QueryK):
    """`QueryK` with separate keys for each order (Nguyen and Joty 2018, Eq. 8).

    A token has the key `K_t W_{k,n}` in n-grams of order `n`. The paper writes this
    form; its numbers of parameters are those of `QueryK`.
    """

    def make_keys(self, projection: Projection) -> None:
        self.key_denses = [
            projection(f"key_{order}", self.key_dim, self.widths.key)
            for order in self.group.orders
        ]

    def key_projections(self) -> list[NgramProjection]:
        return [(1, dense) for dense in self.key_denses]


SCORINGS = {"conv_kv": ConvKV, "query_k": QueryK, "query_k_by_order": QueryKByOrder}
