"""The previous context joins the query: products with all keys at every position.

Over long sequences on CPUs, the scan takes two rows at a time. A row is a head of a
sentence, and has matrices of its own, which are read at each position. Those of two
rows fit into the cache of a core. In a graph of TensorFlow, a scan multiplies operation
by operation; as a program of XLA it takes half the time. A program is compiled for each
shape, so it is one for rounded lengths. On JAX, several devices may share the rows: it
scans all of them together.
"""

import dataclasses
import functools
from collections.abc import Callable

import keras
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.attention.recurrences.base import RecurrentLayer
from keras_attnvariants.attention.recurrences.base import average
from keras_attnvariants.attention.recurrences.base import products
from keras_attnvariants.attention.recurrences.feedback import Feedback
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import in_xla
from keras_attnvariants.backend import jit_by_rows
from keras_attnvariants.backend import on_cpu
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


# Of inputs by name `[B, H, T, S]`, matrices `[B, H, ...]`, and `unroll`, a divisor of
# `T`: an output `[B, H, T, S]`.
Scan = Callable[..., Tensor]

# Rows of a block.
ROWS = 2
# Positions of one iteration of a scan.
UNROLL = 4
# Matrices of fewer positions are small.
LONG = 256
# Lengths are rounded up to a multiple of it, which is one of `UNROLL`.
MULTIPLE = 128


def scan_rows(
    scan: Scan, inputs: State, matrices: tuple[Tensor, Tensor], padding: float
) -> Tensor:
    """The outputs of a scan, in blocks of rows where that is faster.

    Sentences and heads must not depend on each other, and nothing on later positions
    whose inputs are `padding`.

    Args:
        scan: a function of a module, as its program is kept.
        inputs: tensors `[B, H, T, S]` by name.
        matrices: `[B, H, S, D]` and `[B, H, D, S]`.
        padding: what inputs have in positions that are not there.

    Returns:
        `[B, H, T, S]`.
    """
    if in_xla():
        return scan_in_xla(scan, inputs, matrices)
    length = ops.shape(matrices[0])[2]
    plain = functools.partial(scan, inputs, *matrices, unroll=1)
    if not on_cpu() or (isinstance(length, int) and length < LONG):
        return plain()
    by_xla = functools.partial(scan_by_xla, scan, inputs, matrices, padding)
    if isinstance(length, int):
        return by_xla()
    return ops.cond(length >= LONG, by_xla, plain)


def scan_in_xla(scan: Scan, inputs: State, matrices: tuple[Tensor, Tensor]) -> Tensor:
    """The outputs of a scan that is a part of a program of XLA."""
    shape = ops.shape(next(iter(inputs.values())))
    if not all(isinstance(size, int) for size in shape):
        return scan(inputs, *matrices, unroll=1)
    batch, heads, target, source = shape
    unroll = 1 if target % UNROLL else UNROLL
    sequences = batch * heads
    is_divided = source >= LONG and sequences > 0 and sequences % ROWS == 0
    if not is_divided or backend.name() != "tensorflow" or not on_cpu():
        return scan(inputs, *matrices, unroll=unroll)

    def blocks(x: Tensor) -> Tensor:
        return ops.reshape(x, (-1, ROWS, 1, *ops.shape(x)[2:]))

    def scan_block(
        state: Tensor, block: tuple[State, tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        inputs, matrices = block
        return state, scan(inputs, *matrices, unroll=unroll)

    divided = keras.tree.map_structure(blocks, (inputs, matrices))
    _, outputs = backend.scan(scan_block, ops.zeros(()), divided)
    return ops.reshape(outputs, shape)


def scan_by_xla(
    scan: Scan, inputs: State, matrices: tuple[Tensor, Tensor], padding: float
) -> Tensor:
    """The outputs of a scan that is a program of XLA in a graph of TensorFlow."""
    batch, heads, target, source = ops.shape(next(iter(inputs.values())))

    def rows(x: Tensor, rounded: tuple[bool, bool], value: float = 0.0) -> Tensor:
        sizes = ops.shape(x)[2:]
        more = [
            -size % MULTIPLE if is_length else 0
            for size, is_length in zip(sizes, rounded, strict=True)
        ]
        widths = [[0, 0], [0, 0], *([0, size] for size in more)]
        padded = functools.partial(ops.pad, x, widths, constant_values=value)
        x = ops.cond(sum(more) > 0, padded, lambda: x)
        longer = [size + extra for size, extra in zip(sizes, more, strict=True)]
        return ops.reshape(x, (batch * heads, *longer))

    sequences = [rows(x, (True, True), padding) for x in inputs.values()]
    value, key = rows(matrices[0], (True, False)), rows(matrices[1], (False, True))
    found = program(scan, tuple(inputs))(*sequences, value, key)
    found = ops.reshape(found, (batch, heads, *ops.shape(found)[1:]))
    return found[:, :, :target, :source]


@functools.cache
def program(scan: Scan, names: tuple[str, ...]) -> Callable[..., Tensor]:
    """A scan of rows `[N, T, S]`, whose inputs have these names, in blocks by XLA."""

    def rows(*tensors: Tensor) -> Tensor:
        with_head = [x[:, None] for x in tensors]
        inputs = dict(zip(names, with_head, strict=False))
        return scan(inputs, *with_head[len(names) :], unroll=UNROLL)[:, 0]

    return jit_by_rows(rows, ROWS)
