"""Scans over long sequences by XLA, inside of a graph that XLA does not compile.

In a graph of TensorFlow, a scan multiplies one row with large matrices at each
position, operation by operation. One program of XLA takes half the time, but it is
compiled for each shape. So it is one for few rows, of a sentence and a head each, and
for rounded lengths.
"""

import functools
from collections.abc import Callable

from keras import ops

from keras_attnvariants.backend import in_xla
from keras_attnvariants.backend import jit_by_rows
from keras_attnvariants.backend import runs_by_rows
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# Of inputs by name `[B, H, T, S]`, matrices `[B, H, ...]`, and `unroll`, a divisor of
# `T`: an output `[B, H, T, S]`.
Scan = Callable[..., Tensor]

# Their matrices fit into the cache of a core.
ROWS = 2
# Positions of one iteration of a scan.
UNROLL = 4
# Sources of fewer positions are not worth a compilation.
LONG = 256
# Lengths are rounded up to a multiple of it, which is one of `UNROLL`.
MULTIPLE = 128


def scan_rows(
    scan: Scan, inputs: State, matrices: tuple[Tensor, Tensor], padding: float
) -> Tensor:
    """The outputs of a scan, by XLA if that is faster.

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
    length = ops.shape(matrices[0])[2]
    steps = ops.shape(next(iter(inputs.values())))[2]
    is_divisible = isinstance(steps, int) and steps % UNROLL == 0
    unroll = UNROLL if in_xla() and is_divisible else 1
    plain = functools.partial(scan, inputs, *matrices, unroll=unroll)
    if not runs_by_rows() or (isinstance(length, int) and length < LONG):
        return plain()
    by_rows = functools.partial(scan_blocks, scan, inputs, matrices, padding)
    if isinstance(length, int):
        return by_rows()
    return ops.cond(length >= LONG, by_rows, plain)


def scan_blocks(
    scan: Scan, inputs: State, matrices: tuple[Tensor, Tensor], padding: float
) -> Tensor:
    """The outputs of a scan, by XLA."""
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
