"""Scans over long sequences on CPUs, two rows at a time.

A row is a head of a sentence, and has matrices of its own, which are read at each
position. Those of two rows fit into the cache of a core. In a graph of TensorFlow, a
scan multiplies operation by operation; as a program of XLA it takes half the time. A
program is compiled for each shape, so it is one for rounded lengths.

On JAX, several devices may share the rows: it scans all of them together.
"""

import functools
from collections.abc import Callable

import keras
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import in_xla
from keras_attnvariants.backend import jit_by_rows
from keras_attnvariants.backend import on_cpu
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

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
