"""`LayerNormalization` against Keras' layer: values, gradients, what is remembered."""

import keras
import numpy as np
import pytest

from keras_attnvariants import backend
from keras_attnvariants.backend import LayerNormalization

TOLERANCE = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 6e-2}


def layer(kind, dtype="float32", width=8):
    """A built layer whose weights are no ones and zeros."""
    built = kind(epsilon=1e-5, dtype=dtype)
    built.build((None, None, width))
    rng = np.random.default_rng(1)
    built.set_weights([rng.normal(size=width).astype("float32") for _ in range(2)])
    return built


def value_and_gradients(layer, x, probe, training=True):
    """The output, and gradients of its sum with weights `probe`, as float32."""
    dtype = layer.compute_dtype
    options = {"training": training} if isinstance(layer, LayerNormalization) else {}
    x, probe = (keras.ops.cast(keras.ops.array(part), dtype) for part in (x, probe))
    if backend.name() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, **options)
            value = tf.reduce_sum(y * probe)
        found = [y, *tape.gradient(value, [x, *layer.trainable_variables])]
    else:
        import jax

        def output(x, weights):
            return layer.stateless_call(weights, [], x, **options)[0]

        weights = [weight.value for weight in layer.trainable_variables]
        y, gradients = jax.vjp(output, x, weights)
        by_x, by_weights = gradients(probe)
        found = [y, by_x, *by_weights]
    return [keras.ops.convert_to_numpy(keras.ops.cast(v, "float32")) for v in found]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(2, 3, 8), (5, 8), (2, 2, 3, 8), (0, 3, 8)])
def test_values_and_gradients_are_those_of_keras(dtype, shape):
    rng = np.random.default_rng(2)
    x, probe = rng.normal(1.0, 3.0, size=shape), rng.normal(size=shape)
    theirs = value_and_gradients(
        layer(keras.layers.LayerNormalization, dtype), x, probe
    )
    ours = value_and_gradients(layer(LayerNormalization, dtype), x, probe)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == other.shape
        scale = max(1.0, np.abs(other).max(initial=0.0))
        np.testing.assert_allclose(mine, other, atol=TOLERANCE[dtype] * scale)


def test_inference_computes_the_same():
    x, probe = np.random.default_rng(3).normal(size=(2, 4, 3, 8)).astype("float32")
    built = layer(LayerNormalization)
    training, inference = (
        value_and_gradients(built, x, probe, training=flag) for flag in (True, False)
    )
    for one, other in zip(training, inference, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="reads a graph")
def test_the_gradient_remembers_the_input_alone():
    import tensorflow as tf

    built = layer(LayerNormalization)

    @tf.function(input_signature=[tf.TensorSpec([4, 6, 8]), tf.TensorSpec([4, 6, 8])])
    def gradient(x, upstream):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = built(x, training=True)
        return tape.gradient(y, x, upstream)

    operations = gradient.get_concrete_function().graph.get_operations()
    calls = [op for op in operations if "PartitionedCall" in op.type]
    assert len(calls) == 1
    # The input and what comes from above, as rows that are filled up.
    filled = [t.op for t in calls[0].inputs if t.shape.rank == 2]
    assert [operation.type for operation in filled] == ["Pad", "Pad"]
    rows = [operation.inputs[0].op for operation in filled]
    assert [operation.type for operation in rows] == ["Reshape", "Reshape"]
    sources = {operation.inputs[0].op.type for operation in rows}
    assert not sources & {"Mul", "AddV2", "Sub"}


def test_layer_survives_serialization():
    built = layer(LayerNormalization)
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(built)
    )
    assert type(copy) is LayerNormalization
    assert copy.epsilon == 1e-5


def test_scale_and_offset_are_not_rounded():
    built = layer(LayerNormalization, "mixed_bfloat16")
    x = np.random.default_rng(4).normal(size=(50, 8)).astype("float32")
    x = keras.ops.cast(keras.ops.array(x), "bfloat16")
    found, expected = built(x), layer(LayerNormalization)(keras.ops.cast(x, "float32"))
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    found, expected = (
        keras.ops.convert_to_numpy(keras.ops.cast(y, "float32"))
        for y in (found, keras.ops.cast(expected, "bfloat16"))
    )
    np.testing.assert_array_equal(found, expected)
