"""The previous context joins the query: products with all keys at every position."""

import dataclasses
import functools

import keras
from keras import ops

from keras_attnvariants.attention.recurrences.base import RecurrentLayer
from keras_attnvariants.attention.recurrences.base import average
from keras_attnvariants.attention.recurrences.base import products
from keras_attnvariants.attention.recurrences.feedback import Feedback
from keras_attnvariants.attention.recurrences.rows import scan_rows
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend.softmax import MASKED_LOGIT
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


@keras.saving.register_keras_serializable(package=PACKAGE)
@dataclasses.dataclass(frozen=True)
class PreviousContext(Feedback):
    """Queries are projections of the input and of the previous context (Eq. 2).

    `q_i = [s_i ; c_{i-1}] W`. State: the contexts, `[B, K, H, D]`.
    """

    def layers(self, layer: RecurrentLayer) -> dict[str, keras.layers.Layer]:
        # The rows of W for the context, applied to the keys: k . (c W) = (k W^T) . c.
        sizes = (layer.head_dim, layer.head_key_dim)
        dense = layer.recurrent_head_dense(
            "query", "btho,hio->bthi", sizes, rows_before=layer.width
        )
        return {"query": dense}

    def prepare(self, layer: RecurrentLayer, memory: State) -> State:
        keys = ops.swapaxes(memory["key"] * layer.scale, 1, 2)
        return {"context_key": ops.swapaxes(layer.recurrent["query"](keys), 1, 2)}

    def initial_state(
        self, layer: RecurrentLayer, batch: Size, beams: int, memory: State
    ) -> State:
        shape = (batch, beams, layer.num_heads, layer.head_dim)
        return {"context": ops.zeros(shape, layer.compute_dtype)}

    def state_of(self, weights: Tensor, memory: State) -> State:
        return {"context": average(weights, memory["value"])}

    def feedback(self, layer: RecurrentLayer, state: State, memory: State) -> Tensor:
        return products(state["context"], memory["context_key"])

    def matrices(self, layer: RecurrentLayer, memory: State) -> State:
        value, key = (
            ops.cast(memory[name], "float32") for name in ("value", "context_key")
        )
        # Each matrix also transposed: products with rows are slow otherwise.
        length, dim = value.shape[2:]
        if length is None or length > 2 * dim:
            return {
                "forward": (value, ops.swapaxes(key, 2, 3)),
                "backward": (key, ops.swapaxes(value, 2, 3)),
            }
        # A context is an average of values, so what it adds to the energies is the
        # average of what the values add. This is computed beforehand, and the scan
        # needs one product instead of two.
        pairs = ops.einsum("bhsd,bhjd->bhsj", value, key)
        return {"forward": (pairs,), "backward": (ops.swapaxes(pairs, 2, 3),)}

    def apply_to_sequence(
        self, layer: RecurrentLayer, matrices: State, memory: State, weights: Tensor
    ) -> Tensor:
        # In the dtype of computation, like all products of whole sequences.
        return self.feedback(layer, self.state_of(weights, memory), memory)

    def scan_weights(
        self, inputs: State, matrices: State, training: bool | None
    ) -> Tensor:
        factors = matrices["forward"]
        if not training or len(factors) == 1 or "is_open" in inputs:
            return super().scan_weights(inputs, matrices, training)
        return scan_rows(context_weights, inputs, factors, MASKED_LOGIT)

    def scan_gradient(self, inputs: State, matrices: State) -> Tensor:
        factors = matrices["backward"]
        if len(factors) == 1:
            return super().scan_gradient(inputs, matrices)
        return scan_rows(context_gradient, inputs, factors, 0.0)

    def apply(self, matrices: State, weights: Tensor) -> Tensor:
        return functools.reduce(ops.matmul, matrices["forward"], weights)

    def apply_transposed(self, matrices: State, gradient: Tensor) -> Tensor:
        return functools.reduce(ops.matmul, matrices["backward"], gradient)


def context_weights(inputs: State, *factors: Tensor, unroll: int) -> Tensor:
    """The scan of the weights of `PreviousContext`, position by position."""
    matrices = {"forward": factors}
    return PreviousContext().weights_by_position(inputs, matrices, unroll)


def context_gradient(inputs: State, *factors: Tensor, unroll: int) -> Tensor:
    """The scan of their gradient, position by position."""
    matrices = {"backward": factors}
    return PreviousContext().gradient_by_position(inputs, matrices, unroll)
