"""ONNX graphs of functions of TensorFlow, run by ONNX Runtime."""

from importlib import import_module

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import keras_attnvariants as kav

if keras.config.backend() != "tensorflow":
    pytest.skip("converts graphs of TensorFlow", allow_module_level=True)
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
graphs = import_module("keras_attnvariants.backend.onnx_graphs")  # needs it too


def run(function, *arrays):
    """The output of a function of arrays of any sizes, as an ONNX graph."""
    specs = [tf.TensorSpec([None] * x.ndim, x.dtype) for x in arrays]
    graph = tf.function(function, specs, autograph=False, jit_compile=True)
    names = [f"input_{number}" for number in range(len(arrays))]
    model = graphs.onnx_graph(graph.get_concrete_function(), names, ["found"])
    session = onnxruntime.InferenceSession(model.SerializeToString())
    assert [x.name for x in session.get_inputs()] == names
    [found] = session.run(["found"], dict(zip(names, arrays, strict=True)))
    return found


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
@pytest.mark.parametrize("operator", [tf.math.floordiv, tf.math.floormod])
def test_quotients_are_rounded_down(operator, dtype):
    x = np.array([-9, -8, -1, 0, 1, 7, 9], dtype)
    for divisor in (4, -4):
        y = np.full_like(x, divisor)
        np.testing.assert_array_equal(run(operator, x, y), operator(x, y))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 3])
def test_a_slice_is_written(axis, count):
    x = np.arange(60, dtype="float32").reshape(3, 4, 5)
    new = -np.take(x, range(count), axis)
    for place in range(x.shape[axis] - count + 1):
        begin = np.array(place, "int32")

        def write(x, begin):
            x, part = tf.ensure_shape(x, (3, 4, 5)), tf.constant(new)
            start = [0, 0, 0]
            start[axis] = begin
            return ops.slice_update(x, start, part)

        expected = x.copy()
        np.moveaxis(expected, axis, 0)[place : place + count] = np.moveaxis(
            new, axis, 0
        )
        np.testing.assert_array_equal(run(write, x, begin), expected)


def test_a_shape_of_a_reshaped_tensor():
    def twice(x):
        batch, length, _ = ops.shape(x)
        y = ops.reshape(ops.reshape(x, (-1, 6)) + 1, (batch, length, 6))
        return ops.reshape(y, (*ops.shape(y)[:2], 2, 3))

    x = np.arange(48, dtype="float32").reshape(2, 4, 6)
    np.testing.assert_array_equal(run(twice, x), x.reshape(2, 4, 2, 3) + 1)


@pytest.mark.parametrize(
    "layer",
    [
        kav.DotProductAttention(num_heads=2),
        kav.HardCodedAttention(num_heads=2),
        kav.HardCodedCrossAttention(num_heads=2),
    ],
)
def test_a_model_of_plain_keras(layer):
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(50, 8)(ids)
    model = keras.Model(ids, layer(x, x))
    signature = [keras.InputSpec("int32", (None, None), name="ids")]
    graph = graphs.onnx_call(model, signature)
    session = onnxruntime.InferenceSession(graph)
    assert [x.name for x in session.get_inputs()] == ["ids"]
    for width in (3, 11):
        given = np.arange(2 * width, dtype="int32").reshape(2, width)
        [found] = session.run(["logits"], {"ids": given})
        np.testing.assert_allclose(found, model(given), atol=1e-6)


def test_a_missing_operator_is_named():
    with pytest.raises(ValueError, match="operators that ONNX has.*Igamma"):
        run(tf.math.igamma, np.ones(3, "float32"), np.ones(3, "float32"))
