"""Recurrences that add the previous context to the keys and values.

The softmax over the source and one extra pair `(key, value)` is a gate between the
ordinary context and the extra value: with `o_i` and `l_i` the context and the
log-sum-exp of the energies over the source alone,

    p_i = sigmoid(q_i . key / sqrt(key_dim) - l_i),  c_i = (1 - p_i) o_i + p_i value

so the scan over the target does not need the source.
"""

import dataclasses

import keras
from keras import ops

from keras_attnvariants.attention.multi_head import merge_heads
from keras_attnvariants.attention.multi_head import split_heads
from keras_attnvariants.attention.recurrences.base import Projections
from keras_attnvariants.attention.recurrences.base import Recurrence
from keras_attnvariants.attention.recurrences.base import average
from keras_attnvariants.attention.recurrences.base import delayed
from keras_attnvariants.attention.recurrences.base import scan_time
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import masked_softmax
from keras_attnvariants.backend import section
from keras_attnvariants.backend import with_gradient
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# A log-sum-exp that closes the gate; its negative replaces masked energies.
CLOSED = 1e9


@dataclasses.dataclass(frozen=True)
class ExpandedList(Recurrence):
    """Base class: one extra pair, made from the previous context.

    The returned weights are those over the source; they sum to 1 minus the weight of
    the extra pair. The context before the first position is 0. Dropout applies to all
    weights that form the output, but the next pair is made from the context without
    dropout.

    Args:
        mask_first: whether the first position has no extra pair. By default it has
            a pair of zeros, which takes part in the softmax.
    """

    mask_first: bool = False

    # The state is the context by head.

    def initial_state(
        self, projections: Projections, batch: Size, beams: int, memory: State
    ) -> State:
        shape = (batch, beams, projections.num_heads, projections.value_dim)
        zeros = ops.zeros(shape, projections.dtype)
        return {"context": self.kept(projections, zeros)}

    def kept(self, projections: Projections, context: Tensor) -> Tensor:
        """What the state stores of contexts `[B, K, H, D]`."""
        return context

    def queries(self, projections: Projections, q: Tensor) -> Tensor:
        """The queries for the extra key, from scaled queries."""
        return q

    def pair(self, projections: Projections, kept: Tensor) -> tuple[Tensor, Tensor]:
        """The extra key and value `[B, K, H, D]` after a position."""
        raise NotImplementedError(f"{type(self).__name__} has no `pair`.")

    # The composition of `kept` and `pair`, for whole sequences and for scans.

    def matrices(self, projections: Projections) -> State:
        """The tensors that `pair_of` and `pair_gradient` need, in the compute dtype."""
        return {}

    def pair_of(self, matrices: State, context: Tensor) -> tuple[Tensor, Tensor]:
        """The extra key and value after contexts `[B, T, H, D]`; affine."""
        return context, context

    def pair_gradient(self, matrices: State, key: Tensor, value: Tensor) -> Tensor:
        """The gradient of a context, from those of its key and value."""
        return key + value

    def gate_inputs(
        self,
        projections: Projections,
        q: Tensor,
        energies: Tensor,
        mask: Tensor,
        memory: State,
        is_first: Tensor,
    ) -> tuple[State, Tensor]:
        """The inputs of `gate` and the source weights, which do not need the state.

        Args:
            projections, q, energies, mask, memory: as for `attend`.
            is_first: bool `[T]` or scalar, True at the first position.
        """
        weights = masked_softmax(energies, mask)
        total = ops.logsumexp(ops.where(mask, energies, -CLOSED), axis=-1)
        # A query without visible source positions has a context of 0.
        is_open = ops.any(mask, axis=-1)  # [B, 1|H, 1|T]
        if self.mask_first:
            is_open = ops.logical_and(is_open, ops.logical_not(is_first))
        inputs = {
            "query": self.queries(projections, q),
            "context": average(weights, memory["value"]),
            "total": ops.swapaxes(ops.where(is_open, total, CLOSED), 1, 2),  # [B, T, H]
        }
        return inputs, weights

    def gate(self, inputs: State, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The context `[B, K, H, D]` and the weight of the extra pair `[B, K, H]`."""
        logit = ops.cast(ops.sum(inputs["query"] * key, axis=-1), "float32")
        extra = ops.sigmoid(logit - inputs["total"])
        context = inputs["context"]
        change = ops.cast(extra, context.dtype)[..., None] * (value - context)
        return context + change, extra

    def attend(
        self,
        projections: Projections,
        q: Tensor,
        energies: Tensor,
        mask: Tensor,
        memory: State,
        training: bool | None,
    ) -> tuple[Tensor, Tensor]:
        is_first = ops.equal(ops.arange(ops.shape(q)[1]), 0)
        inputs, weights = self.gate_inputs(
            projections, q, energies, mask, memory, is_first
        )
        inputs = {name: ops.cast(x, "float32") for name, x in inputs.items()}
        matrices = self.matrices(projections)
        contexts, extra, value = self.gated(inputs, matrices)
        contexts = ops.cast(contexts, projections.dtype)
        extra = ops.swapaxes(extra, 1, 2)[..., None]  # [B, H, T, 1]
        weights = weights * (1.0 - extra)
        if not (training and projections.dropout):
            return contexts, weights
        listed = ops.concatenate([weights, extra], axis=-1)
        kept = projections.drop(listed, training)
        value = ops.cast(value, projections.dtype)
        source_length = ops.shape(weights)[-1]
        dropped = average(section(kept, 0, source_length, axis=3), memory["value"])
        extra = ops.swapaxes(section(kept, source_length, 1, axis=3), 1, 2)
        return dropped + extra * value, weights

    def gated(self, inputs: State, matrices: State) -> tuple[Tensor, Tensor, Tensor]:
        """The contexts, weights and values of the extra pairs of all positions.

        The pairs are computed twice: one after the other in a scan, without gradients,
        and all at once from the contexts of the scan. Gradients of `matrices` are then
        products of whole sequences instead of sums over the scan.
        """

        def body(context: Tensor, inputs: State) -> tuple[Tensor, Tensor]:
            context, _ = self.gate(inputs, *self.pair_of(matrices, context))
            return context, context

        zeros = ops.zeros_like(section(inputs["context"], 0, 1, axis=1))
        contexts = ops.stop_gradient(scan_time(body, zeros, inputs))
        key, value = self.pair_of(matrices, delayed(contexts))
        _, extra = self.gate(inputs, key, value)
        saved = {"query": inputs["query"], "context": inputs["context"]}
        saved |= {"key": key, "value": value, "extra": extra, "matrices": matrices}
        return with_gradient(
            (contexts, extra, value),
            {**inputs, "key": key, "value": value},
            self.gradient_of_gate,
            saved,
        )

    def gradient_of_gate(
        self, gradients: tuple[Tensor, Tensor, Tensor], saved: State
    ) -> State:
        """The gradients of what `gate` takes, from those of what `gated` returns."""
        slope = saved["extra"] * (1.0 - saved["extra"])
        inputs = {
            "context": gradients[0],
            "logit": gradients[1] * slope,
            "value": gradients[2],
            "change": (saved["value"] - saved["context"]) * slope[..., None],
            "extra": saved["extra"][..., None],
            "query": saved["query"],
        }

        def body(later: Tensor, inputs: State) -> tuple[Tensor, tuple[Tensor, Tensor]]:
            context = inputs["context"] + later
            logit = ops.sum(context * inputs["change"], axis=-1) + inputs["logit"]
            key = inputs["query"] * logit[..., None]
            value = inputs["extra"] * context + inputs["value"]
            earlier = self.pair_gradient(saved["matrices"], key, value)
            return earlier, (context, logit)

        zeros = ops.zeros_like(section(saved["context"], 0, 1, axis=1))
        context, logit = scan_time(body, zeros, inputs, reverse=True)
        return {
            "query": saved["key"] * logit[..., None],
            "context": context - inputs["extra"] * context,
            "total": -logit,
            "key": saved["query"] * logit[..., None],
            "value": inputs["extra"] * context + inputs["value"],
        }

    def step(
        self,
        projections: Projections,
        q: Tensor,
        energies: Tensor,
        mask: Tensor,
        memory: State,
        position: Size,
        state: State,
    ) -> tuple[Tensor, Tensor, State]:
        is_first = ops.equal(position, 0)
        inputs, weights = self.gate_inputs(
            projections, q, energies, mask, memory, is_first
        )
        context, extra = self.gate(inputs, *self.pair(projections, state["context"]))
        state = {"context": self.kept(projections, context)}
        extra = ops.swapaxes(extra, 1, 2)[..., None]
        return context, weights * (1.0 - extra), state


@dataclasses.dataclass(frozen=True)
class ExpandedContext(ExpandedList):
    """Base class: the pair is made from the layer's output, which joins all heads."""

    def kept(self, projections: Projections, context: Tensor) -> Tensor:
        return projections.output(merge_heads(context))

    def matrices(self, projections: Projections) -> State:
        # Both maps are affine, and so is their composition. Its matrix is computed
        # once, so the scan needs one product per position.
        def flat_pair(context: Tensor) -> Tensor:
            pair = self.pair(projections, projections.output(context))
            return ops.concatenate([merge_heads(part) for part in pair], axis=-1)

        width = projections.num_heads * projections.value_dim
        offset = flat_pair(ops.zeros((1, width), projections.dtype))
        matrix = flat_pair(ops.eye(width, dtype=projections.dtype)) - offset
        return {"matrix": matrix, "offset": offset}

    def pair_of(self, matrices: State, context: Tensor) -> tuple[Tensor, Tensor]:
        matrix = matrices["matrix"]
        batch, length, heads, width = ops.shape(context)
        # Two axes only: the gradient of a product with three is slow.
        rows = ops.cast(ops.reshape(context, (-1, heads * width)), matrix.dtype)
        rows = ops.cast(ops.matmul(rows, matrix) + matrices["offset"], "float32")
        values = heads * width
        keys = matrix.shape[1] - values
        key = section(rows, 0, keys, axis=1)
        value = section(rows, keys, values, axis=1)
        shape = (batch, length, heads, -1)
        return ops.reshape(key, shape), ops.reshape(value, shape)

    def pair_gradient(self, matrices: State, key: Tensor, value: Tensor) -> Tensor:
        matrix = matrices["matrix"]
        rows = ops.concatenate([merge_heads(key), merge_heads(value)], axis=-1)
        rows = ops.cast(rows[:, 0], matrix.dtype)
        context = ops.cast(ops.einsum("bo,io->bi", rows, matrix), "float32")
        return ops.reshape(context, ops.shape(value))


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class ExpandedShared(ExpandedContext):
    """The pair is the output, projected like the source (Eq. 5, "expand v1").

    State: the output, `[B, K, width]`. With `use_bias`, the extra pair includes the
    biases of the projections, and the output before the first position is the bias.

    Args:
        mask_first: as in `ExpandedList`.

    Raises:
        ValueError: when built, the source is not as wide as the target.
    """

    def layers(self, projections: Projections) -> dict[str, keras.layers.Layer]:
        width = projections.width
        widths = [
            dense.kernel.shape[0] for dense in (projections.key, projections.value)
        ]
        if widths != [width, width]:
            raise ValueError(
                f"`key` and `value` must be as wide as `query` ({width}): "
                "`recurrence='expanded_shared'` projects outputs like the source. "
                f"Received: key width={widths[0]}, value width={widths[1]}"
            )
        return {}

    def pair(self, projections: Projections, kept: Tensor) -> tuple[Tensor, Tensor]:
        return (
            split_heads(projections.key(kept), projections.num_heads),
            split_heads(projections.value(kept), projections.num_heads),
        )


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class ExpandedFull(ExpandedContext):
    """The pair is the output, with separate projections (Eq. 6, "expand v2").

    State: the output, `[B, K, width]`.
    """

    def layers(self, projections: Projections) -> dict[str, keras.layers.Layer]:
        heads, width = projections.num_heads, projections.width
        return {
            "key": projections.dense("key", width, heads * projections.key_dim),
            "value": projections.dense("value", width, heads * projections.value_dim),
        }

    def pair(self, projections: Projections, kept: Tensor) -> tuple[Tensor, Tensor]:
        return (
            split_heads(projections.recurrent["key"](kept), projections.num_heads),
            split_heads(projections.recurrent["value"](kept), projections.num_heads),
        )


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class ExpandedHeadKey(ExpandedList):
    """The extra value is the head's context, the key a projection (Eq. 8, "expand v4").

    State: the contexts, `[B, K, H, D]`.
    """

    def layers(self, projections: Projections) -> dict[str, keras.layers.Layer]:
        # W in q . (c W) = (q W^T) . c: applied to all queries before the scan.
        sizes = (projections.value_dim, projections.key_dim)
        return {"key": projections.head_dense("key", "btho,hio->bthi", sizes)}

    def queries(self, projections: Projections, q: Tensor) -> Tensor:
        return projections.recurrent["key"](q)

    def pair(self, projections: Projections, kept: Tensor) -> tuple[Tensor, Tensor]:
        return kept, kept


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class ExpandedHead(ExpandedHeadKey):
    """The extra key and value are projections of the head's context (Eq. 7, "v3")."""

    def layers(self, projections: Projections) -> dict[str, keras.layers.Layer]:
        sizes = (projections.value_dim, projections.value_dim)
        value = projections.head_dense("value", "bthi,hio->btho", sizes)
        return {**super().layers(projections), "value": value}

    def matrices(self, projections: Projections) -> State:
        # From the layer's outputs, as it may be quantized.
        width = projections.value_dim
        rows = ops.eye(width, dtype=projections.dtype)[None, :, None]
        rows = ops.tile(rows, (1, 1, projections.num_heads, 1))
        return {"value": ops.swapaxes(projections.recurrent["value"](rows)[0], 0, 1)}

    def pair_of(self, matrices: State, context: Tensor) -> tuple[Tensor, Tensor]:
        kernel = matrices["value"]
        narrow = ops.cast(context, kernel.dtype)
        value = ops.einsum("bthi,hio->btho", narrow, kernel)
        return context, ops.cast(value, "float32")

    def pair_gradient(self, matrices: State, key: Tensor, value: Tensor) -> Tensor:
        kernel = matrices["value"]
        narrow = ops.cast(value, kernel.dtype)
        context = ops.einsum("btho,hio->bthi", narrow, kernel)
        return key + ops.cast(context, "float32")

    def pair(self, projections: Projections, kept: Tensor) -> tuple[Tensor, Tensor]:
        return kept, projections.recurrent["value"](kept)
