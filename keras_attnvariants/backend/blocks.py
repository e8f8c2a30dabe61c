"""Functions of rows that are compiled once, however many rows there are.

XLA compiles one program for each shape of its inputs. Batches have many shapes.
"""

from collections.abc import Callable
from typing import Any

import keras

from keras_attnvariants.backend.compilation import in_xla
from keras_attnvariants.backend.compilation import jit
from keras_attnvariants.backend.compilation import on_cpu
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor


def jit_by_rows(
    function: Callable[..., NestedTensors], rows: int = 128
) -> Callable[..., Any]:
    """Compiles a function that treats each row of its inputs separately.

    On TensorFlow, XLA compiles one program for blocks of `rows` rows, which runs as
    often as needed; the last block is padded with zeros. On GPUs, and where XLA
    compiles everything (as on JAX), all rows are one block.

    Args:
        function: takes tensors `[N, ...]` and returns nested tensors `[N, ...]`.
        rows: number of rows of a block.

    Returns:
        A callable with the signature of `function`. It has no gradient on TensorFlow.

    Example:

    >>> from keras import ops
    >>> double = jit_by_rows(lambda x: 2 * x, rows=2)
    >>> [float(x) for x in double(ops.array([1.0, 2.0, 3.0]))]
    [2.0, 4.0, 6.0]
    """
    program = jit(function)

    def by_rows(*inputs: Tensor) -> NestedTensors:
        if splits_rows():
            return in_blocks(program, inputs, rows)
        return program(*inputs)

    return by_rows


def splits_rows() -> bool:
    """Whether `jit_by_rows` runs programs for blocks here.

    It does on a CPU if XLA does not compile the whole TensorFlow graph.
    """
    return not in_xla() and on_cpu()


def in_blocks(program: Any, inputs: tuple[Tensor, ...], rows: int) -> NestedTensors:
    """The outputs of a compiled function of TensorFlow, computed block by block.

    Outputs are written in place, so only one copy of them exists.
    """
    import tensorflow as tf

    tree = keras.tree
    count = keras.ops.shape(inputs[0])[0]
    blocks = tf.maximum(1, -(-count // rows))

    def written(index: Size, results: NestedTensors, found: NestedTensors) -> Any:
        def write(result: Tensor, x: Tensor) -> Tensor:
            # Into the buffer of `result` itself, which nothing else reads.
            changed = tf.raw_ops.InplaceUpdate(x=result, i=[index], v=x[None])
            return tf.ensure_shape(changed, result.shape)

        return tree.map_structure(write, results, found)

    def body(index: Tensor, results: NestedTensors) -> tuple[Tensor, NestedTensors]:
        found = program(*(block(x, index, rows) for x in inputs))
        return index + 1, written(index, results, found)

    def empty(x: Tensor) -> Tensor:
        shape = tf.concat([[blocks], tf.shape(x)], 0)
        return tf.ensure_shape(
            tf.raw_ops.Empty(shape=shape, dtype=x.dtype), (None, *x.shape)
        )

    # The first block shows the shapes of the outputs.
    first = program(*(block(x, 0, rows) for x in inputs))
    if isinstance(count, int) and count <= rows:
        return tree.map_structure(lambda x: x[:count], first)
    results = tree.map_structure(empty, first)
    results = written(0, results, first)
    _, results = tf.while_loop(
        lambda index, results: index < blocks, body, (tf.constant(1), results)
    )
    return tree.map_structure(lambda x: joined(x, count), results)


def joined(blocks: Tensor, count: Size) -> Tensor:
    """The first `count` rows of all blocks, `[blocks, rows, ...]`."""
    import tensorflow as tf

    shape = tf.concat([[-1], tf.shape(blocks)[2:]], 0)
    known = count if isinstance(count, int) else None
    rows = tf.reshape(blocks, shape)[:count]
    return tf.ensure_shape(rows, (known, *blocks.shape[2:]))


def block(x: Tensor, index: Size, rows: int) -> Tensor:
    """Rows `[index * rows, (index + 1) * rows)` of `x`, and zeros after the last."""
    import tensorflow as tf

    part = x[index * rows : (index + 1) * rows]
    missing = rows - tf.shape(part)[0]
    others = [[0, 0]] * (len(x.shape) - 1)
    return tf.ensure_shape(tf.pad(part, [[0, missing], *others]), (rows, *x.shape[1:]))
