"""What is kept of a graph's tensors is found again there, and nowhere else."""

import pytest
import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.backend import remember
from keras_attnvariants.backend import remembered


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only TensorFlow keeps them")
def test_values_of_a_graph_are_found_by_both_tensors():
    found = []

    @tf.function
    def graph(x, y):
        double = 2 * x
        remember(x, y, (double,))
        found.extend(remembered(*pair) for pair in ((x, y), (x, double), (y, x)))
        return found[0][0] is double

    assert graph(tf.constant(1.0), tf.constant(2.0))
    assert found[1:] == [None, None]


def test_values_of_an_inner_graph_are_not_kept():
    @tf.function
    def graph(x, y):
        @tf.function
        def inner():
            remember(x, y, x + y)
            return x + y

        inner()
        return remembered(x, y) is None

    assert graph(tf.constant(1.0), tf.constant(2.0))


def test_nothing_is_kept_of_eager_tensors():
    x = tf.constant(1.0)
    remember(x, x, x + x)
    assert remembered(x, x) is None
