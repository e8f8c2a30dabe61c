"""Tables that are computed once on the host and read in every graph."""

import numpy as np

from keras_attnvariants.backend.compilation import name
from keras_attnvariants.utils.typing import Tensor


def constant(array: np.ndarray) -> Tensor:
    """`array` as a value that graphs refer to instead of holding a copy of it.

    Converted to a tensor within a TensorFlow graph, an array becomes a constant of
    that graph, and of every other graph that reads it: a SavedModel would hold one
    copy for each search and for each body of a loop. A tensor made outside of all
    graphs is captured by them and stored once.

    Call it once, in `build` for example, and keep what it returns; it is no weight,
    so files of weights do not hold it. Arrays of up to 128 elements are copied into
    graphs nevertheless.
    """
    if name() != "tensorflow":
        return array
    import tensorflow as tf

    with tf.init_scope():
        return tf.constant(array)
