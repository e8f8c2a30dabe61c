"""Which precision is fastest on this machine."""

from collections.abc import Callable
from functools import partial

import tensorflow as tf

from keras_attnvariants.utils.machine import shortest_seconds
from keras_attnvariants.utils.typing import Tensor

# A batch of some sentences with their hypotheses, and a small vocabulary.
_ROWS, _INPUTS, _OUTPUTS = 64, 512, 8192
_ROUNDS = 9


def fastest_precision() -> str:
    """`"float32"` or `"bfloat16"`: which of them multiplies matrices faster here.

    Many processors have no products of bfloat16, and convert it.
    """
    precisions = ["float32", "bfloat16"]
    products = {precision: timed_product(precision) for precision in precisions}
    seconds = shortest_seconds(products, _ROUNDS)
    return min(precisions, key=seconds.__getitem__)


def timed_product(precision: str) -> Callable[[], float]:
    """A function that computes a product like those of a decoding step."""
    product = product_of(precision)
    return partial(_wait_for, product, tf.ones((_ROWS, _INPUTS), precision))


def _wait_for(product: Callable[[Tensor], Tensor], rows: Tensor) -> float:
    return float(tf.cast(product(rows)[0, 0], "float32"))


def product_of(precision: str) -> Callable[[Tensor], Tensor]:
    """A function that multiplies rows by a matrix, in a dtype."""
    kernel = tf.ones((_INPUTS, _OUTPUTS), precision)
    return tf.function(lambda rows: tf.matmul(rows, kernel), autograph=False)
