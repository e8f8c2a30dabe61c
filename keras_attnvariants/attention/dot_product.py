"""Learned multi-head attention, the baseline of every paper."""

from typing import Any

from keras import ops

from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.attention.base import BaseAttention
from keras_attnvariants.attention.checks import check_optional
from keras_attnvariants.attention.checks import check_position
from keras_attnvariants.attention.heads import heads_first
from keras_attnvariants.attention.heads import merge_heads
from keras_attnvariants.attention.heads import split_heads
from keras_attnvariants.attention.registry import register_attention
from keras_attnvariants.backend import Dropout
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.backend import write_at


@register_attention(
    paper="Vaswani et al. 2017",
    examples=({"num_heads": 4}, {"num_heads": 4, "key_dim": 3, "use_bias": True}),
)
class DotProductAttention(BaseAttention):
    """Scaled dot-product attention (Vaswani et al. 2017, Eq. 1).

    `softmax(Q K^T / sqrt(key_dim)) V` per head, with learned projections.

    Args:
        num_heads: number of heads `H`.
        key_dim: width of a head's queries and keys; `None` for
            width / `num_heads`, so that one head alone is as wide as the model.
        value_dim: width of a head's values; `None` for `key_dim`.
        dropout: rate at which attention weights are dropped in training.
        use_bias: whether the four projections have biases.
        kernel_initializer: of the query, key and value projections.
        output_initializer: of the output projection; `None` for the same.
        bias_initializer: of the biases, if any.
        seed: of the dropout.

    Raises:
        ValueError: a size or rate is out of range, or `num_heads` does not
            divide the width and `key_dim` was not given.

    Example:

    >>> import numpy as np
    >>> layer = DotProductAttention(num_heads=4)
    >>> x = np.ones((2, 7, 16), "float32")
    >>> output, scores = layer(x, x, return_attention_scores=True)
    >>> output.shape, scores.shape
    (TensorShape([2, 7, 16]), TensorShape([2, 4, 7, 7]))
    """

    roles = frozenset({"encoder", "decoder", "cross"})

    def __init__(
        self,
        num_heads: int,
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ):
        check_optional("key_dim", key_dim)
        value_dim = key_dim if value_dim is None else value_dim
        super().__init__(num_heads, value_dim, use_bias, **kwargs)
        self.key_dim = key_dim
        self.dropout = dropout
        self.seed = seed
        self.dropout_layer = Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def build(self, query_shape, value_shape=None, key_shape=None):
        key_dim = self.key_dim or self.divide_width(query_shape[-1], "key_dim")
        value_shape = value_shape or query_shape
        super().build(query_shape, value_shape, key_shape)
        self.scale = key_dim**-0.5
        self.query_dense = self.projection(key_dim, "query", query_shape[-1])
        self.key_dense = self.projection(key_dim, "key", (key_shape or value_shape)[-1])

    def attend(self, query, value, key, masks, return_scores, training):
        q, k, v = self.project_inputs(query, value, key)
        mask = masks.combined(ops.shape(q)[1], ops.shape(k)[1])
        return self.dot_product(q, k, v, mask, training)

    def project_inputs(self, query, value, key=None):
        """Scaled queries, keys and values by head, `[B, L, H, D]` each."""
        k = split_heads(self.key_dense(value if key is None else key), self.num_heads)
        v = split_heads(self.value_dense(value), self.num_heads)
        return self.project_query(query), k, v

    def project_query(self, query):
        """Scaled queries `[..., H, D]` from inputs `[..., width]`."""
        return split_heads(self.query_dense(query) * self.scale, self.num_heads)

    def dot_product(self, q, k, v, mask, training=False):
        """Context and weights from scaled queries, keys and values by head.

        Args:
            q: `[B, T, H, D]`. k, v: `[B, S, H, D]`.
            mask: bool `[1|B, 1|T, S]`, or `None`.
        """
        return self.mix(ops.einsum("bthd,bshd->bhts", q, k), v, mask, training)

    def mix(self, logits, v, mask, training=False):
        """The same from the scores `[B, H, T, S]` of queries and keys."""
        weights = masked_softmax(logits, None if mask is None else mask[:, None])
        dropped = self.dropout_layer(ops.cast(weights, v.dtype), training=training)
        return ops.einsum("bhts,bshd->bthd", dropped, v), weights

    def prepare(self, value, value_mask=None):
        mask = ops.ones(ops.shape(value)[:2], "bool")
        return {
            "key": heads_first(self.key_dense(value), self.num_heads),
            "value": heads_first(self.value_dense(value), self.num_heads),
            "mask": mask if value_mask is None else ops.cast(value_mask, "bool"),
        }

    def initial_state(self, batch, beams, max_length, memory=None):
        if memory is not None:
            return {}
        lead = (batch, self.num_heads, max_length, beams)
        key_dim = self.query_dense.units // self.num_heads
        return {
            # Whose entry of a position belongs to the history of a hypothesis.
            "rows": ops.zeros((batch, beams, max_length), "int32"),
            SHARED: {
                "key": ops.zeros((*lead, key_dim), self.compute_dtype),
                "value": ops.zeros((*lead, self.head_dim), self.compute_dtype),
            },
        }

    def step(self, query, position, state, memory=None, return_attention_scores=False):
        q = self.project_query(query)  # [B, K, H, D]
        if memory is not None:
            # The beams of a sentence are queries of one attention call.
            mask = memory["mask"][:, None, None]
            context, weights = self.look_up(q, memory["key"], memory["value"], mask)
        else:
            state = self.extend(state, query, position)
            context, weights = self.look_back(q, position, state)
        output = self.output_dense(merge_heads(context))
        if not return_attention_scores:
            return output, state
        return output, state, ops.transpose(weights, (0, 2, 1, 3))  # [B, K, H, S]

    def look_up(self, q, key, value, mask):
        """Context `[B, K, H, D]` and weights `[B, H, K, S]` of one position.

        Args:
            q: scaled queries `[B, K, H, D]`.
            key, value: `[B, H, S, D]`: their products need no other order.
            mask: bool `[B, 1, 1|K, S]`.
        """
        weights = masked_softmax(ops.einsum("bkhd,bhsd->bhks", q, key), mask)
        mixing = ops.cast(weights, q.dtype)
        return ops.einsum("bhks,bhsd->bkhd", mixing, value), weights

    def extend(self, state, query, position):
        """The state with the key and value of this position written into it."""
        beams, slots = ops.shape(state["rows"])[1:]
        check_position(position, slots)

        def written(dense, cache):
            new = heads_first(dense(query), self.num_heads)  # [B, H, K, D]
            return write_at(cache, new[:, :, None], position, axis=2)

        own = ops.arange(beams, dtype="int32")[:, None]
        is_now = ops.equal(ops.arange(slots), position)
        cache = state[SHARED]
        return {
            "rows": ops.where(is_now, own, state["rows"]),
            SHARED: {
                "key": written(self.key_dense, cache["key"]),
                "value": written(self.value_dense, cache["value"]),
            },
        }

    def look_back(self, q, position, state):
        """Context `[B, K, H, D]` and weights `[B, H, K, slots]` of the state so far.

        All hypotheses of a sentence see one list of keys and values, in which each
        has its own history: moving a history is moving the numbers of its rows.
        """
        batch, beams, slots = ops.shape(state["rows"])
        rows = ops.arange(beams, dtype="int32")
        is_own = ops.equal(state["rows"][..., None], rows)  # [B, K, slots, K]
        is_seen = ops.less_equal(ops.arange(slots), position)[:, None]
        mask = ops.logical_and(is_own, is_seen)
        key, value = (
            ops.reshape(cache, (batch, self.num_heads, slots * beams, cache.shape[-1]))
            for cache in (state[SHARED]["key"], state[SHARED]["value"])
        )
        mask = ops.reshape(mask, (batch, 1, beams, slots * beams))
        context, weights = self.look_up(q, key, value, mask)
        shape = (batch, self.num_heads, beams, slots, beams)
        return context, ops.sum(ops.reshape(weights, shape), axis=-1)

    def get_config(self):
        return {
            **super().get_config(),
            "key_dim": self.key_dim,
            "dropout": self.dropout,
            "seed": self.seed,
        }
