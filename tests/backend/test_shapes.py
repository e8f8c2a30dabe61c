"""Lengths that may be integers or tensors."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend


@pytest.mark.parametrize("length", [0, 4, 5, 6, 100])
def test_integers_stay_integers(length):
    assert backend.at_most(length, 5) == min(length, 5)
    assert backend.at_least(length, 5) == max(length, 5)
    assert isinstance(backend.at_most(length, 5), int)
    assert isinstance(backend.at_least(length, 5), int)


@pytest.mark.parametrize("length", [0, 4, 5, 6, 100])
def test_tensors_are_bounded_too(length):
    tensor = ops.convert_to_tensor(np.int32(length))
    assert int(backend.at_most(tensor, 5)) == min(length, 5)
    assert int(backend.at_least(tensor, 5)) == max(length, 5)


@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 4), (3, -1), (24,)])
def test_a_known_shape_is_as_usual(shape):
    x = np.arange(24).reshape(2, 12)
    found = ops.convert_to_numpy(backend.reshape(ops.convert_to_tensor(x), shape))
    np.testing.assert_array_equal(found, x.reshape(shape))


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only TensorFlow has them")
@pytest.mark.parametrize(
    "known, operators", [((None, 12), {"Reshape"}), ((None, None), {"Pack", "Reshape"})]
)
def test_one_unknown_size_is_inferred(known, operators):
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec(known)])
    def halves(x):
        rows, width = ops.shape(x)
        return backend.reshape(x, (rows, 2, width // 2))

    for rows in (0, 1, 5):
        assert halves(tf.zeros((rows, 12))).shape == (rows, 2, 6)
    result = halves.get_concrete_function().graph.outputs[0].op.inputs[0].op
    sources = {result.type} | {tensor.op.type for tensor in result.inputs}
    assert operators <= sources and ("Pack" in sources) == ("Pack" in operators)
