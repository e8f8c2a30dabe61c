"""The update of Adam in one operation is that of Keras."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.training.optimizers import Adam

SETTINGS = {"learning_rate": 0.03, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3}
START = np.array([[1.0, -2.0, 0.5]], "float32")


def gradients():
    return np.random.default_rng(0).normal(size=(5, *START.shape)).astype("float32")


def updated(optimizer, mode="eager"):
    """A variable and all of the optimizer's after five updates."""
    variable = keras.Variable(START)
    optimizer.build([variable])

    def update(gradient):
        optimizer.apply([gradient])

    if mode != "eager":
        import tensorflow as tf

        update = tf.function(update, jit_compile=mode == "xla")
    for gradient in gradients():
        update(ops.array(gradient))
    return [np.array(v) for v in (variable, *optimizer.variables)]


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
@pytest.mark.parametrize("options", [{}, {"amsgrad": True}, {"global_clipnorm": 0.5}])
def test_equals_keras(mode, options):
    if backend.name() != "tensorflow" and mode != "eager":
        pytest.skip("JAX updates by functions without state")
    expected = updated(keras.optimizers.Adam(**SETTINGS, **options))
    for found, wanted in zip(
        updated(Adam(**SETTINGS, **options), mode), expected, strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-7)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only TensorFlow has it")
def test_an_update_is_one_operation():
    import tensorflow as tf

    variable, optimizer = keras.Variable(START), Adam(**SETTINGS)
    optimizer.build([variable])
    apply = tf.function(lambda gradient: optimizer.apply([gradient]))
    graph = apply.get_concrete_function(tf.TensorSpec(START.shape)).graph
    kinds = [operation.type for operation in graph.get_operations()]
    assert kinds.count("ResourceApplyAdam") == 1 and "Sqrt" not in kinds


@pytest.mark.skipif(backend.name() == "tensorflow", reason="Keras has none there")
def test_updates_without_state_are_those_of_keras():
    def stateless(optimizer):
        variable = keras.Variable(START)
        optimizer.build([variable])
        others = [v.value for v in optimizer.variables]
        gradient = ops.array(gradients()[0])
        (found,), _ = optimizer.stateless_apply(others, [gradient], [variable.value])
        return ops.convert_to_numpy(found)

    expected = stateless(keras.optimizers.Adam(**SETTINGS))
    np.testing.assert_array_equal(stateless(Adam(**SETTINGS)), expected)


def test_only_tensorflow_has_it():
    variable = keras.Variable(START)
    assert backend.has_adam(variable) == (backend.name() == "tensorflow")
