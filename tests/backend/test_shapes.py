"""Lengths that may be integers or tensors."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import shapes


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


def test_leading_axes_come_back():
    x = np.arange(24.0).reshape(2, 3, 4)
    matrix = backend.as_matrix(ops.convert_to_tensor(x))
    assert tuple(matrix.shape) == (6, 4)
    found = shapes.with_lead_of(x, matrix[:, :2])
    np.testing.assert_array_equal(ops.convert_to_numpy(found), x[:, :, :2])
    assert backend.as_matrix(matrix) is matrix


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only TensorFlow has them")
def test_the_only_unknown_size_takes_no_operator():
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((None, 4)), tf.TensorSpec((None,) * 2)])
    def check(x, y):
        assert backend.sizes(x) == (-1, 4)
        assert not tf.compat.v1.get_default_graph().get_operations()[2:]
        assert [ops.is_tensor(size) for size in backend.sizes(y)] == [True, True]

    check(tf.zeros((2, 4)), tf.zeros((2, 4)))


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


@pytest.mark.skipif(backend.name() != "tensorflow", reason="shapes are fixed on JAX")
def test_a_loop_may_change_a_number_of_rows_that_is_forgotten():
    import tensorflow as tf

    @tf.function
    def halved(x):
        start = backend.of_any_rows(x), backend.of_any_rows(tf.constant(3))
        assert start[0].shape.as_list() == [None, 2] and start[1].shape == ()
        return tf.while_loop(
            lambda x, count: tf.shape(x)[0] > count,
            lambda x, count: (x[: tf.shape(x)[0] // 2], count),
            start,
        )[0]

    rows = np.arange(26.0).reshape(13, 2)
    np.testing.assert_array_equal(halved(rows), rows[:3])
