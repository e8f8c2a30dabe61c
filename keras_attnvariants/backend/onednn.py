"""The product of 8-bit integers that oneDNN provides to TensorFlow on CPUs.

Its operator is not among `tf.raw_ops`, so it enters a graph as part of a `GraphDef`.

On x86 processors with VNNI the product is exact. On others, oneDNN adds pairs of
products in 16 bits, which overflow silently for the largest products.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attnvariants.utils.typing import Tensor

OPERATOR = "_QuantizedMatMul"

# The largest absolute value of the integers of both matrices.
_LARGEST = 127

# Number of products in a tested sum: as many as fill a register.
_TERMS = 64


def onednn_product(
    integers: Tensor,
    kernel: Tensor,
    largest: Tensor,
    kernel_largest: Tensor,
    transposed: bool = False,
    constant: bool = False,
) -> Tensor:
    """Product of matrices of 8-bit integers, see `is_onednn_exact`; in graphs only.

    The result is float32: bfloat16 with several scales is two hundred times as slow.

    Args:
        integers: int8 `[N, I]`, from -127 to 127.
        kernel: int8 `[I, O]`, or `[O, I]` if `transposed`, from -127 to 127.
        largest: float32 scalar, the float that 127 stands for in `integers`.
        kernel_largest: float32 `[O]`, the float that 127 stands for in each column.
        transposed: whether the kernel is transposed.
        constant: whether the kernel never changes. The operator then arranges it for
            the processor at its first call, and keeps the result.

    Returns:
        Float32 `[N, O]`.
    """
    import tensorflow as tf

    # The operator uses the larger absolute value of the two ends of a range.
    ends = tf.identity(largest), tf.identity(kernel_largest)
    inputs = [
        tf.bitcast(integers, "qint8"),
        tf.bitcast(tf.identity(kernel), "qint8"),
        tf.zeros(kernel_largest.shape),  # the bias
        *(ends[0], ends[0], ends[1], ends[1]),
    ]
    return add_operator(OPERATOR, inputs, product_attributes(transposed, constant))


def product_attributes(transposed: bool, constant: bool) -> dict[str, dict[str, Any]]:
    """The attributes of the operator, as protocol buffers in the form of dicts.

    Those that are left out have defaults: floats, scaled without an offset.
    """
    import tensorflow as tf

    integer, real = (d.as_datatype_enum for d in (tf.qint8, tf.float32))
    return {
        "Tdevice_inputs": {"list": {"type": [integer, integer, real]}},
        "Thost_inputs": {"list": {"type": [real] * 4}},
        "Tdevice_outputs": {"list": {"type": [real]}},
        "T1": {"type": integer},
        "T2": {"type": integer},
        "transpose_b": {"b": transposed},
        # Whether the kernel and the bias are kept from the first call.
        "is_weight_const": {"b": constant},
        "is_bias_const": {"b": constant},
        "fused_ops": {"list": {"s": [b"BiasAdd", b"Dequantize"]}},
    }


@functools.cache
def is_onednn_exact() -> bool:
    """Whether `onednn_product` is available, and exact on this processor."""
    import tensorflow as tf

    integers = range(-_LARGEST, _LARGEST + 1)
    with tf.init_scope(), tf.device("CPU"):
        try:
            return bool(tf.function(lambda: sums_exactly(integers), autograph=False)())
        except (ValueError, tf.errors.OpError):  # no such operator, or no kernel for it
            return False


def sums_exactly(integers: Sequence[int] = (-_LARGEST, _LARGEST)) -> Tensor:
    """Whether `onednn_product` is exact where this graph runs; a bool tensor.

    Args:
        integers: each is multiplied by each, in sums of equal products, which are the
            largest possible sums of pairs.
    """
    import tensorflow as tf

    values = np.array(integers, "int8")
    rows = np.repeat(values[:, None], _TERMS, axis=1)
    found = onednn_product(
        tf.constant(rows),
        tf.constant(rows.T),
        tf.constant(float(_LARGEST)),
        tf.fill(values.shape, float(_LARGEST)),
    )
    sums = _TERMS * np.outer(values.astype("float32"), values)
    return tf.reduce_all(tf.abs(found - sums) < 0.5)


def add_operator(
    name: str, inputs: list[Tensor], attributes: dict[str, dict[str, Any]]
) -> Tensor:
    """Adds an operator with one output to the current graph, and returns its output.

    Args:
        name: name of the operator, such as `"MatMul"`.
        inputs: tensors of the current graph.
        attributes: protocol buffers `AttrValue` in the form of dicts.
    """
    import tensorflow as tf

    names = [f"input_{number}" for number in range(len(inputs))]
    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    node = graph.node.add(name="output", op=name, input=names)
    for key, value in attributes.items():
        node.attr[key].CopyFrom(tf.compat.v1.AttrValue(**value))
    [output] = tf.graph_util.import_graph_def(
        graph, dict(zip(names, inputs, strict=True)), ["output:0"], name=name.strip("_")
    )
    return output
