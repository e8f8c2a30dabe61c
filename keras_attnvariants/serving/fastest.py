"""Which precision is fastest on this machine."""

import statistics
import time

import tensorflow as tf

# A batch of some sentences with their hypotheses, and a small vocabulary.
_SHAPES = (64, 512), (512, 8192)
_RUNS = 9


def fastest_precision() -> str:
    """`"float32"` or `"bfloat16"`, whichever multiplies matrices faster here.

    Many processors have no products of bfloat16, and convert it. 8-bit integers are not
    in question: exported models make floats of them when they are loaded.
    """
    return min(("float32", "bfloat16"), key=seconds_of_product)


def seconds_of_product(dtype: str) -> float:
    """The median time of a product like those of a decoding step."""
    left, right = (tf.ones(shape, dtype) for shape in _SHAPES)
    product = tf.function(lambda x, y: tf.reduce_sum(tf.matmul(x, y)), autograph=False)
    found = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        product(left, right).numpy()
        found.append(time.perf_counter() - start)
    return statistics.median(found)
