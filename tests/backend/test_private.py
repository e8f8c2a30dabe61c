"""The private parts of Keras and TensorFlow do what their functions say."""

import keras
import pytest

from keras_attnvariants import backend
from keras_attnvariants.backend.private import is_in_xla_context
from keras_attnvariants.backend.private import nested_layers


@pytest.mark.skipif(backend.name() != "tensorflow", reason="a question to TensorFlow")
@pytest.mark.parametrize("xla", [False, True])
def test_xla_is_noticed_in_inner_graphs_too(xla):
    import tensorflow as tf

    found = []

    def body(i):
        found.append(is_in_xla_context())
        return i + 1

    def function(x):
        found.append(is_in_xla_context())
        return tf.while_loop(lambda i: i < 2, body, (x,))

    backend.jit(function, xla=xla)(tf.constant(0))
    assert set(found) == {xla} and len(found) >= 2
    assert not is_in_xla_context()


def test_layers_are_found_at_any_depth_once_each():
    class Outer(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = keras.Sequential([keras.layers.Dense(2)])
            self.listed = [self.inner, keras.layers.Dropout(0.1)]

    outer = Outer()
    found = nested_layers(outer)
    assert len({id(layer) for layer in found}) == len(found)
    kinds = {type(layer).__name__ for layer in found}
    assert {"Outer", "Sequential", "Dense", "Dropout"} <= kinds
