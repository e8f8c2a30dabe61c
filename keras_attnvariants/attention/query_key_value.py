"""Base classes of layers with queries, keys and values.

* `QueryKeyValueAttention`: the three projections, for weights of any kind;
* `SoftmaxAttention`: weights that are the softmax of energies, with dropout.
"""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.calls import Call
from keras_attnvariants.attention.calls import Widths
from keras_attnvariants.attention.multi_head import MultiHeadBase
from keras_attnvariants.attention.multi_head import split_heads
from keras_attnvariants.attention.registry import ROLES
from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import Dropout
from keras_attnvariants.backend import project_jointly
from keras_attnvariants.backend import reshape
from keras_attnvariants.backend import sizes
from keras_attnvariants.backend import swap_rows
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.typing import DType
from keras_attnvariants.utils.typing import Tensor


class QueryKeyValueAttention(MultiHeadBase):
    """Base class of layers that project queries, keys and values.

    Args:
        num_heads: number of heads `H`.
        key_dim: width of a head's queries and keys; `None` for width / `num_heads`.
        value_dim: width of a head's values; `None` for `key_dim`.
        use_bias, initializers, regularizers and constraints: as in
            `ProjectedAttention`.
    """

    roles = frozenset(ROLES)

    def __init__(
        self,
        num_heads: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_optional_integer("key_dim", key_dim)
        super().__init__(
            num_heads, key_dim if value_dim is None else value_dim, **kwargs
        )
        self.key_dim = key_dim

    def make_layers(self, widths: Widths) -> None:
        self.head_key_dim = self.head_width("key_dim", self.key_dim, widths.query)
        self.query_dense = self.head_dense("query", widths.query, self.head_key_dim)
        self.key_dense = self.head_dense("key", widths.key, self.head_key_dim)
        super().make_layers(widths)

    @property
    def joint_projections(self) -> tuple[Dense, ...]:
        """The layers that read the same inputs in a step of self-attention."""
        return self.query_dense, self.key_dense, self.value_dense

    def project_inputs(self, call: Call) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values by head, `[B, L, H, D]` each."""
        q = self.project_query(call.query)
        k = self.split(self.key_dense(call.keys))
        return q, k, self.split(self.value_dense(call.value))

    def project_query(self, query: Tensor) -> Tensor:
        """Queries `[..., H, D]` for inputs `[..., width]`."""
        return self.split(self.query_dense(query))


class SoftmaxAttention(QueryKeyValueAttention):
    """Base class of layers whose weights are the softmax of energies.

    Args:
        num_heads: number of heads `H`.
        key_dim, value_dim: as in `QueryKeyValueAttention`.
        dropout: dropout rate of the attention weights.
        use_bias: whether the projections have biases.
        seed: random seed of the dropout.
        initializers, regularizers and constraints: as in `ProjectedAttention`.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_heads, key_dim, value_dim, use_bias=use_bias, **kwargs)
        self.dropout = dropout
        self.seed = seed
        self.dropout_layer = Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def drop(self, weights: Tensor, training: bool | None) -> Tensor:
        """Weights in the compute dtype, after dropout."""
        weights = ops.cast(weights, self.compute_dtype)
        return self.dropout_layer(weights, training=training)


def heads_first(x: Tensor, num_heads: int) -> Tensor:
    """`[B, L, H * D]` to `[B, H, L, D]`, the order for matrix products."""
    if x.shape[1] == 1:
        batch, _, width = sizes(x)
        return reshape(x, (batch, num_heads, 1, width // num_heads))
    return ops.transpose(split_heads(x, num_heads), (0, 2, 1, 3))


def project_heads(
    layers: Sequence[keras.layers.Dense], inputs: Tensor, num_heads: int, dtype: DType
) -> list[Tensor]:
    """Projections of the inputs of a decoding step, by head: `[B, H, K, D]` each.

    Args:
        layers: built layers.
        inputs: `[B, K, width]`.
        num_heads: the number `H` of heads of all of them.
        dtype: of the projections.
    """
    outputs = [ops.cast(x, dtype) for x in project_jointly(layers, inputs)]
    return [swap_rows(split_heads(x, num_heads)) for x in outputs]
