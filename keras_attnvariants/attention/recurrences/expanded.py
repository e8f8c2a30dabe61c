"""Recurrences that add the previous context to the keys and values.

The softmax over the source and one extra pair `(key, value)` is a gate between the
ordinary context and the extra value. With the context `o_i` and the log-sum-exp of the
energies `l_i`, both over the source alone,

    p_i = sigmoid(q_i . key / sqrt(key_dim) - l_i),  c_i = (1 - p_i) o_i + p_i value

The scan over the target therefore does not need the source.
"""

import dataclasses
from typing import Any
from typing import ClassVar

import keras
from keras import ops

from keras_attnvariants.attention.banded import delay
from keras_attnvariants.attention.multi_head import merge_heads
from keras_attnvariants.attention.recurrences.base import Energies
from keras_attnvariants.attention.recurrences.base import Recurrence
from keras_attnvariants.attention.recurrences.base import RecurrentLayer
from keras_attnvariants.attention.recurrences.base import average
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

    keeps: ClassVar[str] = "context"

    mask_first: bool = False

    def queries(self, layer: RecurrentLayer, q: Tensor) -> Tensor:
        """The queries for the extra key, from scaled queries."""
        return q

    def pair(self, layer: RecurrentLayer, context: Tensor) -> tuple[Tensor, Tensor]:
        """The extra key and value `[B, K, H, D]` after contexts of this shape."""
        return context, context

    # The pair for whole sequences and for scans

    def matrices(self, layer: RecurrentLayer) -> State:
        """The tensors that `pair_of` and `pair_gradient` need, in the compute dtype."""
        return {}

    def pair_of(self, matrices: State, context: Tensor) -> tuple[Tensor, Tensor]:
        """The extra key and value after contexts `[B, T, H, D]`; affine."""
        return context, context

    def pair_gradient(self, matrices: State, key: Tensor, value: Tensor) -> Tensor:
        """The gradient of a context, from the gradients of its key and value."""
        return key + value

    def gate_inputs(
        self, layer: RecurrentLayer, plain: Energies, is_first: Tensor
    ) -> tuple[State, Tensor]:
        """The inputs of `gate` and the source weights, which do not need the state.

        Args:
            layer, plain: as for `attend`.
            is_first: bool `[T]` or scalar, True at the first position.
        """
        weights = masked_softmax(plain.energies, plain.mask)
        seen = ops.where(plain.mask, plain.energies, -CLOSED)
        total = ops.logsumexp(seen, axis=-1)
        # A query without visible source positions has a context of 0.
        is_open = ops.any(plain.mask, axis=-1)  # [B, 1|H, 1|T]
        if self.mask_first:
            is_open = ops.logical_and(is_open, ops.logical_not(is_first))
        inputs = {
            "query": self.queries(layer, plain.q),
            "context": average(weights, plain.memory["value"]),
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

    def attend(self, layer: RecurrentLayer, plain: Energies) -> tuple[Tensor, Tensor]:
        is_first = ops.equal(ops.arange(ops.shape(plain.q)[1]), 0)
        inputs, weights = self.gate_inputs(layer, plain, is_first)
        inputs = {name: ops.cast(x, "float32") for name, x in inputs.items()}
        matrices = self.matrices(layer)
        contexts, extra, value = self.gated(inputs, matrices)
        contexts = ops.cast(contexts, layer.compute_dtype)
        extra = ops.swapaxes(extra, 1, 2)[..., None]  # [B, H, T, 1]
        weights = weights * (1.0 - extra)
        if not (plain.training and layer.dropout_layer.rate):
            return contexts, weights
        listed = ops.concatenate([weights, extra], axis=-1)
        kept = layer.drop(listed, plain.training)
        value = ops.cast(value, layer.compute_dtype)
        source_length = ops.shape(weights)[-1]
        of_source = section(kept, 0, source_length, axis=3)
        dropped = average(of_source, plain.memory["value"])
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

        contexts = ops.stop_gradient(scan_time(body, inputs["context"], inputs))
        key, value = self.pair_of(matrices, delay(contexts, 1))
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
        """The gradients of the inputs of `gate`, from those of `gated`'s outputs."""
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

        context, logit = scan_time(body, saved["context"], inputs, reverse=True)
        return {
            "query": saved["key"] * logit[..., None],
            "context": context - inputs["extra"] * context,
            "total": -logit,
            "key": saved["query"] * logit[..., None],
            "value": inputs["extra"] * context + inputs["value"],
        }

    def step(
        self, layer: RecurrentLayer, plain: Energies, position: Size, state: State
    ) -> tuple[Tensor, Tensor, State]:
        inputs, weights = self.gate_inputs(layer, plain, ops.equal(position, 0))
        context, extra = self.gate(inputs, *self.pair(layer, state["context"]))
        extra = ops.swapaxes(extra, 1, 2)[..., None]
        return context, weights * (1.0 - extra), {"context": context}


class ExpandedContext(ExpandedList):
    """Base class: the pair is made from the layer's output, which joins all heads."""

    def projections(self, layer: RecurrentLayer) -> tuple[Any, Any]:
        """The projections of the output to the key and the value."""
        raise NotImplementedError(f"{type(self).__name__} has no `projections`.")

    def pair(self, layer: RecurrentLayer, context: Tensor) -> tuple[Tensor, Tensor]:
        output = layer.output_dense(merge_heads(context))
        key, value = (layer.split(dense(output)) for dense in self.projections(layer))
        return key, value

    def matrices(self, layer: RecurrentLayer) -> State:
        # Both maps are affine, and so is their composition. Its matrix is computed
        # once, so the scan needs one product per position.
        def flat_pair(context: Tensor) -> Tensor:
            pair = self.pair(layer, layer.split(context))
            return ops.concatenate([merge_heads(part) for part in pair], axis=-1)

        width = layer.num_heads * layer.head_dim
        offset = flat_pair(ops.zeros((1, width), layer.compute_dtype))
        matrix = flat_pair(ops.eye(width, dtype=layer.compute_dtype)) - offset
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
        key = ops.reshape(key, (batch, length, heads, keys // heads))
        return key, ops.reshape(value, (batch, length, heads, width))

    def pair_gradient(self, matrices: State, key: Tensor, value: Tensor) -> Tensor:
        matrix = matrices["matrix"]
        rows = ops.concatenate([merge_heads(key), merge_heads(value)], axis=-1)
        rows = ops.cast(rows[:, 0], matrix.dtype)
        context = ops.cast(ops.einsum("bo,io->bi", rows, matrix), "float32")
        return ops.reshape(context, ops.shape(value))


@keras.saving.register_keras_serializable(package=PACKAGE)
class ExpandedShared(ExpandedContext):
    """The pair is the output, projected like the source (Eq. 5, "expand v1").

    State: the contexts, `[B, K, H, D]`. With `use_bias`, the extra pair includes the
    biases of the projections, and the output before the first position is the bias.

    Args:
        mask_first: as in `ExpandedList`.

    Raises:
        ValueError: when built, the source is not as wide as the target.
    """

    def layers(self, layer: RecurrentLayer) -> dict[str, keras.layers.Layer]:
        widths = [dense.kernel.shape[0] for dense in self.projections(layer)]
        if widths != [layer.width] * 2:
            raise ValueError(
                f"`key` and `value` must be as wide as `query` ({layer.width}): "
                "`recurrence='expanded_shared'` projects outputs like the source. "
                f"Received: key width={widths[0]}, value width={widths[1]}"
            )
        return {}

    def projections(self, layer: RecurrentLayer) -> tuple[Any, Any]:
        return layer.key_dense, layer.value_dense


@keras.saving.register_keras_serializable(package=PACKAGE)
class ExpandedFull(ExpandedContext):
    """The pair is the output, with separate projections (Eq. 6, "expand v2").

    State: the contexts, `[B, K, H, D]`.
    """

    def layers(self, layer: RecurrentLayer) -> dict[str, keras.layers.Layer]:
        heads, width = layer.num_heads, layer.width
        return {
            "key": layer.recurrent_dense("key", width, heads * layer.head_key_dim),
            "value": layer.recurrent_dense("value", width, heads * layer.head_dim),
        }

    def projections(self, layer: RecurrentLayer) -> tuple[Any, Any]:
        return layer.recurrent["key"], layer.recurrent["value"]


@keras.saving.register_keras_serializable(package=PACKAGE)
class ExpandedHeadKey(ExpandedList):
    """The extra value is the head's context, the key its projection (Eq. 8, "v4").

    State: the contexts, `[B, K, H, D]`.
    """

    def layers(self, layer: RecurrentLayer) -> dict[str, keras.layers.Layer]:
        # W in q . (c W) = (q W^T) . c: applied to all queries before the scan.
        widths = layer.head_key_dim, layer.head_dim
        return {"key": layer.recurrent_head_dense("key", "btho,hio->bthi", widths)}

    def queries(self, layer: RecurrentLayer, q: Tensor) -> Tensor:
        return layer.recurrent["key"](q)


@keras.saving.register_keras_serializable(package=PACKAGE)
class ExpandedHead(ExpandedHeadKey):
    """The extra key and value are projections of the head's context (Eq. 7, "v3")."""

    def layers(self, layer: RecurrentLayer) -> dict[str, keras.layers.Layer]:
        widths = layer.head_dim, layer.head_dim
        value = layer.recurrent_head_dense("value", "bthi,hio->btho", widths)
        return {**super().layers(layer), "value": value}

    def matrices(self, layer: RecurrentLayer) -> State:
        # Computed from the layer's outputs because it may be quantized.
        width = layer.head_dim
        rows = ops.eye(width, dtype=layer.compute_dtype)[None, :, None]
        rows = ops.tile(rows, (1, 1, layer.num_heads, 1))
        return {"value": ops.swapaxes(layer.recurrent["value"](rows)[0], 0, 1)}

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

    def pair(self, layer: RecurrentLayer, context: Tensor) -> tuple[Tensor, Tensor]:
        return context, layer.recurrent["value"](context)
