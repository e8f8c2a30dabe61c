"""Updates are the same however the gradient of an embedding is stored."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants.training import TrainingConfig


@pytest.mark.skipif(
    keras.config.backend() != "tensorflow", reason="other backends have no such lists"
)
@pytest.mark.parametrize("clipnorm", [None, 1.0])
def test_rows_of_one_token_count_together(clipnorm):
    def trained(stored):
        variable = keras.Variable(np.ones((3, 1), "float32"))
        config = TrainingConfig(10, 0.1, epsilon=1e-3, clipnorm=clipnorm)
        optimizer = config.optimizer()
        optimizer.build([variable])
        for rows in ([1, 1], [0, 1], [2, 2]):
            values = tf.constant([[3.0], [4.0]])
            gradient = tf.IndexedSlices(values, tf.constant(rows), tf.constant([3, 1]))
            optimizer.apply([stored(gradient)])
        return np.array(variable)

    np.testing.assert_array_equal(trained(lambda g: g), trained(tf.convert_to_tensor))
