"""Tables that graphs refer to."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.backend import constant

TABLE = np.arange(200, dtype="float32")


def test_a_constant_is_what_it_was_made_from():
    np.testing.assert_array_equal(ops.convert_to_numpy(constant(TABLE)), TABLE)


@pytest.mark.skipif(
    keras.config.backend() != "tensorflow", reason="about graphs of TensorFlow"
)
def test_a_constant_made_while_a_graph_is_traced_is_no_part_of_it():
    import tensorflow as tf

    made = []

    @tf.function
    def first(x):
        made.append(constant(TABLE))
        return x + made[0]

    @tf.function
    def second(x):
        return x * made[0]

    for function, expected in ((first, TABLE + 1), (second, TABLE)):
        concrete = function.get_concrete_function(tf.TensorSpec([]))
        np.testing.assert_array_equal(concrete(tf.constant(1.0)), expected)
        nodes = concrete.graph.as_graph_def().node
        assert not any(node.op == "Const" for node in nodes)
    assert isinstance(made[0].numpy(), np.ndarray)
