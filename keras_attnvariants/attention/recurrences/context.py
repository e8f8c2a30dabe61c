"""The recurrence in which queries depend on the previous context.

Each position needs products with all keys, within a scan. In a TensorFlow graph on a
CPU, a scan runs operation by operation. For long sequences, an XLA program replaces it
and takes half the time. The program computes two rows at once, where a row is one head
of one sentence. Each row has its own matrices, which are read at each position; those
of two rows fit into the cache of a core. A program is compiled for each shape, so
lengths are rounded up.
"""

import functools
from collections.abc import Callable
from typing import ClassVar

import keras
from keras import ops

from keras_attnvariants.attention.recurrences.base import RecurrentLayer
from keras_attnvariants.attention.recurrences.base import average
from keras_attnvariants.attention.recurrences.base import products
from keras_attnvariants.attention.recurrences.feedback import Factors
from keras_attnvariants.attention.recurrences.feedback import Feedback
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.backend import jit_by_rows
from keras_attnvariants.backend import splits_rows
from keras_attnvariants.backend.softmax import MASKED_LOGIT
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# Rows of a program.
ROWS = 2
# Number of source positions from which a program is used.
LONG = 256
# Lengths are rounded up to a multiple of this.
MULTIPLE = 128


@keras.saving.register_keras_serializable(package=PACKAGE)
class PreviousContext(Feedback):
    """Queries are projections of the input and of the previous context (Eq. 2).

    `q_i = [s_i ; c_{i-1}] W`. State: the contexts, `[B, K, H, D]`.
    """

    keeps: ClassVar[str] = "context"

    def layers(self, layer: RecurrentLayer) -> dict[str, keras.layers.Layer]:
        # The rows of W for the context, applied to the keys: k . (c W) = (k W^T) . c.
        widths = layer.head_key_dim, layer.head_dim
        dense = layer.recurrent_head_dense(
            "query", "btho,hio->bthi", widths, rows_before=layer.width
        )
        return {"query": dense}

    def prepare(self, layer: RecurrentLayer, memory: State) -> State:
        keys = ops.swapaxes(memory["key"] * layer.scale, 1, 2)
        return {"context_key": ops.swapaxes(layer.recurrent["query"](keys), 1, 2)}

    def state_of(self, weights: Tensor, memory: State) -> State:
        return {"context": average(weights, memory["value"])}

    def feedback(self, layer: RecurrentLayer, state: State, memory: State) -> Tensor:
        return products(state["context"], memory["context_key"])

    def factors(self, layer: RecurrentLayer, memory: State) -> tuple[Factors, Factors]:
        value, key = (
            ops.cast(memory[name], "float32") for name in ("value", "context_key")
        )
        # Includes the transposed matrices: products with rows are slow otherwise.
        length, dim = value.shape[2:]
        if length is None or length > 2 * dim:
            return (value, ops.swapaxes(key, 2, 3)), (key, ops.swapaxes(value, 2, 3))
        # A context is an average of values, so the energies that it adds are the
        # average of those that the values add. These are computed beforehand, and the
        # scan needs one product instead of two.
        pairs = ops.einsum("bhsd,bhjd->bhsj", value, key)
        return (pairs,), (ops.swapaxes(pairs, 2, 3),)

    def apply(self, factors: Factors, weights: Tensor) -> Tensor:
        return functools.reduce(ops.matmul, factors, weights)

    def scan(
        self,
        inputs: State,
        factors: Factors,
        is_training: bool = False,
        reverse: bool = False,
    ) -> Tensor:
        plain = functools.partial(super().scan, inputs, factors, is_training, reverse)
        length = ops.shape(factors[0])[2]
        is_short = len(factors) == 1 or (isinstance(length, int) and length < LONG)
        if is_short or not is_training or not splits_rows():
            return plain()
        program = compiled(tuple(inputs), reverse)
        by_xla = functools.partial(scan_by_xla, program, inputs, factors)
        if isinstance(length, int):
            return by_xla()
        return ops.cond(length >= LONG, by_xla, plain)


@functools.cache
def compiled(names: tuple[str, ...], reverse: bool) -> Callable[..., Tensor]:
    """The scan of rows `[N, T, S]`, as a program for blocks of rows.

    Its arguments are the inputs with these names and the factors.
    """

    def rows(*tensors: Tensor) -> Tensor:
        with_head = [x[:, None] for x in tensors]
        inputs = dict(zip(names, with_head, strict=False))
        factors = tuple(with_head[len(names) :])
        return PreviousContext().scan(inputs, factors, reverse=reverse)[:, 0]

    return jit_by_rows(rows, ROWS)


def scan_by_xla(
    program: Callable[..., Tensor], inputs: State, factors: Factors
) -> Tensor:
    """The outputs `[B, H, T, S]` of a compiled scan in a graph of TensorFlow.

    Args:
        program: returned by `compiled`.
        inputs: tensors `[B, H, T, S]` by name.
        factors: `[B, H, S, D]` and `[B, H, D, S]`.
    """
    batch, heads, target, source = ops.shape(next(iter(inputs.values())))
    queries, keys = (-length % MULTIPLE for length in (target, source))

    def rows(x: Tensor, more: tuple[Size, Size], value: float = 0.0) -> Tensor:
        longer = [size + n for size, n in zip(ops.shape(x)[2:], more, strict=True)]
        if any(not isinstance(n, int) or n > 0 for n in more):
            widths = [[0, 0], [0, 0], [0, more[0]], [0, more[1]]]
            x = ops.pad(x, widths, constant_values=value)
        return ops.reshape(x, (batch * heads, *longer))

    sequences = [
        rows(x, (queries, keys), MASKED_LOGIT if name == "energies" else 0.0)
        for name, x in inputs.items()
    ]
    found = program(
        *sequences, rows(factors[0], (keys, 0)), rows(factors[1], (0, keys))
    )
    found = ops.reshape(found, (batch, heads, *ops.shape(found)[1:]))
    return found[:, :, :target, :source]
