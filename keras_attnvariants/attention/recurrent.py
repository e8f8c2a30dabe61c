"""Recurrent cross-attention (Rosendahl, Herold, Petrick and Ney 2021).

Learned attention whose weights at one target position depend on what the same layer
attended to before. `recurrences` says how; this layer owns projections and dropout.
"""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention import recurrences
from keras_attnvariants.attention.checks import check_memory
from keras_attnvariants.attention.dot_product import DotProductAttention
from keras_attnvariants.attention.heads import merge_heads
from keras_attnvariants.attention.heads import split_heads
from keras_attnvariants.attention.registry import register_attention


@register_attention(
    paper="Rosendahl, Herold, Petrick and Ney 2021",
    examples=(
        {"num_heads": 4, "recurrence": "context"},
        {"num_heads": 4, "recurrence": "weights"},
        {
            "num_heads": 4,
            "recurrence": "accumulated_weights",
            "key_dim": 3,
            "value_dim": 5,
            "use_bias": True,
        },
        {
            "num_heads": 4,
            "recurrence": "expanded_shared",
            "key_dim": 3,
            "value_dim": 5,
            "use_bias": True,
        },
        {"num_heads": 4, "recurrence": "expanded_full"},
        {
            "num_heads": 4,
            "recurrence": "expanded_head",
            "key_dim": 3,
            "value_dim": 5,
        },
        {
            "num_heads": 4,
            "recurrence": recurrences.ExpandedHeadKey(mask_first=True),
        },
        {"num_heads": 4, "recurrence": "accumulated_energies"},
        {
            "num_heads": 4,
            "recurrence": recurrences.AccumulatedEnergies(
                rate=0.3, radius=1, renormalize=True, start="first"
            ),
        },
        {"num_heads": 4, "recurrence": "subtracted_weights"},
    ),
)
class RecurrentCrossAttention(DotProductAttention):
    """Cross-attention with a recurrence over target positions (Rosendahl et al. 2021).

    All target positions are computed at once but for the recurrence itself, which is
    a scan over small tensors, or none at all for `"accumulated_energies"`. Nothing is
    passed from layer to layer.

    Args:
        num_heads: number of heads `H`.
        recurrence: the name of a recurrence, for the paper's choice of its options,
            or an object of `keras_attnvariants.attention.recurrences`.

            * `"context"`: queries see the head's last context (Eq. 2);
            * `"weights"`, `"accumulated_weights"`: queries see the last weight of
              each key, or the sum of all before (Eq. 3 and 4);
            * `"expanded_shared"`, `"expanded_full"`, `"expanded_head"`,
              `"expanded_head_key"`: the last context becomes an extra key and value
              (Eq. 5 to 8). The scores are the weights over the source: with that of
              the extra pair they sum to 1;
            * `"accumulated_energies"`: energies are smoothed over target and source
              positions (Eq. 9);
            * `"subtracted_weights"`: past weights lower the energies (Eq. 10).
        key_dim, value_dim, dropout, use_bias, seed and initializers: as in
            `DotProductAttention`. What the recurrence adds has no biases and the
            initializer of the input projections.

    Raises:
        ValueError: as in `DotProductAttention`; the recurrence is unknown or, when
            built, does not fit the widths.
        TypeError: `recurrence` is neither a name nor a recurrence.

    Example:

    >>> import numpy as np
    >>> layer = RecurrentCrossAttention(num_heads=2, recurrence="weights")
    >>> target, source = np.ones((1, 6, 8), "float32"), np.ones((1, 3, 8), "float32")
    >>> output, scores = layer(target, source, return_attention_scores=True)
    >>> output.shape, scores.shape
    (TensorShape([1, 6, 8]), TensorShape([1, 2, 6, 3]))
    """

    roles = frozenset({"cross"})

    def __init__(
        self,
        num_heads: int,
        recurrence: str | recurrences.Recurrence = "weights",
        key_dim: int | None = None,
        value_dim: int | None = None,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(num_heads, key_dim, value_dim, dropout, **kwargs)
        self.recurrence = recurrences.get(recurrence)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.head_key_dim = self.query_dense.units // self.num_heads
        self.recurrent = self.recurrence.layers(self, query_shape[-1])

    def attend(self, query, value, key, masks, return_scores, training):
        q = self.project_query(query)
        memory = self.source(value, key, masks.key)
        masks = masks._replace(key=memory["mask"])
        context, weights = self.recurrence.attend(self, q, memory, masks, training)
        return context, ops.transpose(weights, (0, 2, 1, 3))

    def drop(self, weights, training):
        """Attention weights in the compute dtype, some dropped in training."""
        weights = ops.cast(weights, self.compute_dtype)
        return self.dropout_layer(weights, training=training)

    def source(self, value, key=None, mask=None):
        """All that is known of a source before the first target position."""
        real = ops.ones(ops.shape(value)[:2], "bool")
        keys = self.key_dense(value if key is None else key)
        memory = {
            "key": split_heads(keys, self.num_heads),
            "value": split_heads(self.value_dense(value), self.num_heads),
            "mask": real if mask is None else ops.cast(mask, "bool"),
        }
        return {**memory, **self.recurrence.prepare(self, memory)}

    def prepare(self, value, value_mask=None):
        return self.source(value, mask=value_mask)

    def initial_state(self, batch, beams, max_length, memory=None):
        check_memory(self, memory)
        return self.recurrence.initial_state(self, batch, beams, memory)

    def step(self, query, position, state, memory=None, return_attention_scores=False):
        q = self.project_query(query)  # [B, K, H, D]
        context, weights, state = self.recurrence.step(self, q, position, state, memory)
        output = self.output_dense(merge_heads(context))
        return (output, state, weights) if return_attention_scores else (output, state)

    def get_config(self):
        return {
            **super().get_config(),
            "recurrence": keras.saving.serialize_keras_object(self.recurrence),
        }
