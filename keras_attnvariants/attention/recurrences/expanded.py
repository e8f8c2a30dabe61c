"""Recurrences that put the previous context into the list of keys and values.

The softmax over the source and one extra pair `(key, value)` is a gate between the
ordinary context and the extra value: with `o_i` and `l_i` the context and the
log-sum-exp of the energies over the source alone,

    p_i = sigmoid(q_i . key / sqrt(key_dim) - l_i),  c_i = (1 - p_i) o_i + p_i value

so the scan over the target never touches the source.
"""

import dataclasses

import keras
from keras import ops

from keras_attnvariants.attention.heads import merge_heads
from keras_attnvariants.attention.heads import split_heads
from keras_attnvariants.attention.recurrences.base import Recurrence
from keras_attnvariants.attention.recurrences.base import energies
from keras_attnvariants.attention.recurrences.base import flat_projection
from keras_attnvariants.attention.recurrences.base import head_projection
from keras_attnvariants.attention.recurrences.base import mix
from keras_attnvariants.attention.recurrences.base import scan_time
from keras_attnvariants.attention.recurrences.base import source_mask
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import masked_softmax

# A log-sum-exp that closes the gate; its negative stands for "no source position".
CLOSED = 1e9


@dataclasses.dataclass(frozen=True)
class ExpandedList(Recurrence):
    """Base class: one extra pair, made from the previous context.

    The weights are those over the source; they sum to 1 less the weight of the extra
    pair. The context before the first position is 0. Dropout falls on all weights that
    form the output; the next pair is made from the whole context.

    Args:
        mask_first: whether the first position has no extra pair. By default it has
            one of zeros, which takes its part of the softmax.
    """

    mask_first: bool = False

    # The state is the context by head.

    def initial_state(self, layer, batch, beams, memory):
        shape = (batch, beams, layer.num_heads, layer.head_dim)
        zeros = ops.zeros(shape, layer.compute_dtype)
        return {"context": self.remember(layer, zeros)}

    def remember(self, layer, context):
        """What the state keeps of contexts `[B, K, H, D]`."""
        return context

    def queries(self, layer, q):
        """What the extra key is multiplied with, from scaled queries."""
        return q

    def pair(self, layer, remembered):
        """The extra key and value `[B, K, H, D]` after a position."""
        raise NotImplementedError

    def pair_of_context(self, layer):
        """`pair` after `remember` as a function of contexts, for a whole sequence."""
        return lambda context: self.pair(layer, self.remember(layer, context))

    def source(self, layer, q, memory, mask, is_first):
        """What is independent of the state: inputs of `gate`, and source weights.

        Args:
            is_first: bool `[1|T, 1]`, True where the position is the first.
        """
        logits = energies(q, memory)
        weights = masked_softmax(logits, mask)
        total = ops.logsumexp(ops.where(mask, logits, -CLOSED), axis=-1)
        # A query that sees no source has a context of 0, as everywhere.
        is_open = ops.any(mask, axis=-1)
        if self.mask_first:
            is_open = ops.logical_and(is_open, ops.logical_not(is_first))
        inputs = {
            "query": self.queries(layer, q),
            "context": mix(weights, memory["value"]),
            "total": ops.where(is_open, total, CLOSED),  # [B, T, H]
        }
        return inputs, weights

    def gate(self, inputs, key, value):
        """The context `[B, K, H, D]` and the weight of the extra pair `[B, K, H]`."""
        logit = ops.cast(ops.sum(inputs["query"] * key, axis=-1), "float32")
        extra = ops.sigmoid(logit - inputs["total"])
        context = inputs["context"]
        change = ops.cast(extra, context.dtype)[..., None] * (value - context)
        return context + change, extra

    def attend(self, layer, q, memory, masks, training):
        batch, length = ops.shape(q)[:2]
        mask = masks.combined(length, ops.shape(memory["mask"])[1])[:, :, None]
        is_first = ops.equal(ops.arange(length), 0)[:, None]
        inputs, weights = self.source(layer, q, memory, mask, is_first)
        pair = self.pair_of_context(layer)

        def body(context, inputs):
            context, extra = self.gate(inputs, *pair(context))
            return context, (context, extra)

        shape = (batch, 1, layer.num_heads, layer.head_dim)
        zeros = ops.zeros(shape, inputs["context"].dtype)
        contexts, extra = scan_time(body, zeros, inputs)
        weights = weights * (1.0 - extra)[..., None]
        if not (training and layer.dropout):
            return contexts, weights
        _, value = pair(ops.concatenate([zeros, contexts[:, :-1]], axis=1))
        listed = ops.concatenate([weights, extra[..., None]], axis=-1)
        kept = layer.drop(listed, training)
        dropped = mix(kept[..., :-1], memory["value"]) + kept[..., -1:] * value
        return dropped, weights

    def step(self, layer, q, position, state, memory):
        is_first = ops.equal(position, 0)
        inputs, weights = self.source(layer, q, memory, source_mask(memory), is_first)
        context, extra = self.gate(inputs, *self.pair(layer, state["context"]))
        state = {"context": self.remember(layer, context)}
        return context, weights * (1.0 - extra)[..., None], state


@dataclasses.dataclass(frozen=True)
class ExpandedContext(ExpandedList):
    """Base class: the pair is made from the layer's output, all heads together."""

    def remember(self, layer, context):
        return layer.output_dense(merge_heads(context))

    def pair_of_context(self, layer):
        # Both are affine, and so is one after the other: their matrices are multiplied
        # once, which leaves one product per position to the scan.
        def flat_pair(context):
            pair = self.pair(layer, layer.output_dense(context))
            return ops.concatenate([merge_heads(part) for part in pair], axis=-1)

        width = layer.num_heads * layer.head_dim
        offset = flat_pair(ops.zeros((1, width), layer.compute_dtype))
        matrix = flat_pair(ops.eye(width, dtype=layer.compute_dtype)) - offset
        key_width = layer.num_heads * layer.head_key_dim

        def pair(context):
            # As rows: the gradient of a product of three axes is slow within a loop.
            rows = ops.matmul(ops.reshape(context, (-1, width)), matrix) + offset
            flat = ops.reshape(rows, (*ops.shape(context)[:2], -1))
            key, value = flat[..., :key_width], flat[..., key_width:]
            return split_heads(key, layer.num_heads), split_heads(
                value, layer.num_heads
            )

        return pair


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class ExpandedShared(ExpandedContext):
    """The output goes through the projections of the source (Eq. 5, "expand v1").

    State: the output, `[B, K, width]`. With `use_bias`, the extra pair has the biases
    of the projections as well, and the output before the first position is the bias.

    Args:
        mask_first: as in `ExpandedList`.

    Raises:
        ValueError: when built, the source is not as wide as the target.
    """

    def layers(self, layer, width):
        widths = [
            dense.kernel.shape[0] for dense in (layer.key_dense, layer.value_dense)
        ]
        if widths != [width, width]:
            raise ValueError(
                "`recurrence='expanded_shared'` projects outputs as it projects the "
                f"source: `key` and `value` must be as wide as `query` ({width}). "
                f"Received: key width={widths[0]}, value width={widths[1]}"
            )
        return {}

    def pair(self, layer, remembered):
        return (
            split_heads(layer.key_dense(remembered), layer.num_heads),
            split_heads(layer.value_dense(remembered), layer.num_heads),
        )


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class ExpandedFull(ExpandedContext):
    """The output goes through projections of its own (Eq. 6, "expand v2").

    State: the output, `[B, K, width]`.
    """

    def layers(self, layer, width):
        keys, values = layer.head_key_dim, layer.head_dim
        return {
            "key": flat_projection(layer, "key", width, layer.num_heads * keys),
            "value": flat_projection(layer, "value", width, layer.num_heads * values),
        }

    def pair(self, layer, remembered):
        return (
            split_heads(layer.recurrent["key"](remembered), layer.num_heads),
            split_heads(layer.recurrent["value"](remembered), layer.num_heads),
        )


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class ExpandedHeadKey(ExpandedList):
    """A head's context is its extra value; its key is projected (Eq. 8, "expand v4").

    State: the contexts, `[B, K, H, D]`.
    """

    def layers(self, layer, width):
        # W in q . (c W) = (q W^T) . c: applied to all queries before the scan.
        sizes = (layer.head_dim, layer.head_key_dim)
        return {"key": head_projection(layer, "key", "btho,hio->bthi", sizes)}

    def queries(self, layer, q):
        return layer.recurrent["key"](q)

    def pair(self, layer, remembered):
        return remembered, remembered


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class ExpandedHead(ExpandedHeadKey):
    """Both are projections of a head's own context (Eq. 7, "expand v3")."""

    def layers(self, layer, width):
        sizes = (layer.head_dim, layer.head_dim)
        value = head_projection(layer, "value", "bthi,hio->btho", sizes)
        return {**super().layers(layer, width), "value": value}

    def pair(self, layer, remembered):
        return remembered, layer.recurrent["value"](remembered)
