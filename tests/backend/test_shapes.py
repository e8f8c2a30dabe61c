"""Sizes, slices and orders of tensors."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import shapes
from keras_attnvariants.backend import swap_rows


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
        start = backend.with_unknown_rows(x), backend.with_unknown_rows(tf.constant(3))
        assert start[0].shape.as_list() == [None, 2] and start[1].shape == ()
        return tf.while_loop(
            lambda x, count: tf.shape(x)[0] > count,
            lambda x, count: (x[: tf.shape(x)[0] // 2], count),
            start,
        )[0]

    rows = np.arange(26.0).reshape(13, 2)
    np.testing.assert_array_equal(halved(rows), rows[:3])


@pytest.mark.skipif(backend.name() != "tensorflow", reason="shapes are fixed on JAX")
def test_a_loop_may_change_a_size_that_is_forgotten():
    import tensorflow as tf

    @tf.function
    def grown():
        size = backend.with_unknown_value(2)
        assert backend.with_unknown_value(size) is size
        x = ops.zeros((3, size))
        assert x.shape.as_list() == [3, None]
        return tf.while_loop(
            lambda x: tf.shape(x)[1] < 7, lambda x: (tf.concat([x, x], 1),), (x,)
        )[0]

    assert grown().shape == (3, 8)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "float16"])
@pytest.mark.parametrize(
    "shape, axis", [((2, 3, 4), 1), ((2, 3), 1), ((5,), 0), ((2, 3, 5, 3), 2)]
)
@pytest.mark.parametrize("compiled", [None, False, True])
def test_only_this_position_changes(dtype, shape, axis, compiled):
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, shape).astype("float32")
    part = [*shape]
    part[axis] = 1
    new = rng.integers(-9, 9, part).astype("float32")

    def write(x, new, position):
        return shapes.write_at(x, new, position, axis)

    call = write if compiled is None else backend.jit(write, xla=compiled)
    for position in range(shape[axis]):
        expected = x.copy()
        np.moveaxis(expected, axis, 0)[position] = np.moveaxis(new, axis, 0)[0]
        written = call(
            ops.cast(x, dtype),
            ops.cast(new, dtype),
            ops.convert_to_tensor(position, "int32"),
        )
        assert keras.backend.standardize_dtype(written.dtype) == dtype
        np.testing.assert_array_equal(
            ops.convert_to_numpy(ops.cast(written, "float32")), expected
        )


@pytest.mark.parametrize("compiled", [None, False, True])
@pytest.mark.parametrize(
    "dtype, width", [("float32", 4), ("float32", 3), ("bfloat16", 8), ("bfloat16", 2)]
)
def test_vectors_are_read_where_they_were_written(dtype, width, compiled):
    vectors = backend.VectorLists(width, dtype)
    rng = np.random.default_rng(0)
    expected = np.zeros((2, 3, 6, width), "float32")
    new = rng.integers(-9, 9, (2, 3, 2, width)).astype("float32")

    def written(lists, new, position):
        lists = vectors.write(lists, ops.cast(new, dtype), position)
        return lists, vectors.read(lists, 6)

    call = written if compiled is None else backend.jit(written, xla=compiled)
    lists = vectors.zeros((2, 3), 6)
    assert lists.shape[0] == 2
    for position in (4, 0, 1):
        expected[:, :, position : position + 2] = new
        lists, found = call(
            lists, ops.convert_to_tensor(new), ops.convert_to_tensor(position, "int32")
        )
        assert keras.backend.standardize_dtype(found.dtype) == dtype
        found = ops.convert_to_numpy(ops.cast(found, "float32"))
        np.testing.assert_array_equal(found, expected)
        new = new + 1


def test_several_positions_are_written_at_once():
    x = shapes.write_at(ops.zeros((2, 5, 3)), ops.ones((2, 2, 3)), 3, axis=1)
    assert ops.convert_to_numpy(x).sum(axis=(0, 2)).tolist() == [0, 0, 0, 6, 6]


@pytest.mark.parametrize("compiled", [None, False, True])
@pytest.mark.parametrize(
    "shape, index, options",
    [
        ((4, 3), 2, {}),
        ((4, 3), [[1, 3], [0, 0]], {}),
        ((4, 3), 2, {"axis": 1}),
        ((2, 4, 3), [[1, 3, 3], [0, 2, 1]], {"axis": 1, "batch_axes": 1}),
        ((2, 4, 3), [[1], [2]], {"axis": 2, "batch_axes": 1}),
    ],
)
def test_positions_are_taken(shape, index, options, compiled):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    axis = options.get("axis", 0)
    if "batch_axes" in options:
        rows = [np.take(*pair, axis=axis - 1) for pair in zip(x, index, strict=True)]
        expected = np.stack(rows)
    else:
        expected = np.take(x, index, axis=axis)

    def taken(x, index):
        return backend.take(x, index, **options)

    call = taken if compiled is None else backend.jit(taken, xla=compiled)
    found = call(ops.convert_to_tensor(x), ops.convert_to_tensor(index, "int32"))
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)


def test_rows_may_be_unknown():
    if backend.name() != "tensorflow":
        pytest.skip("JAX knows all shapes")
    import tensorflow as tf

    @tf.function(
        input_signature=[tf.TensorSpec((None, 3, 4)), tf.TensorSpec((None, 1, 4))]
    )
    def write(x, new):
        return shapes.write_at(x, new, 2, axis=1)

    for rows in (0, 1, 3):
        x = write(tf.zeros((rows, 3, 4)), tf.ones((rows, 1, 4)))
        assert x.shape == (rows, 3, 4)
        assert float(tf.reduce_sum(x)) == 4 * rows


def test_the_old_tensor_stays_as_it_was():
    x = ops.zeros((2, 3))
    shapes.write_at(x, ops.ones((2, 1)), 0, axis=1)
    assert not ops.convert_to_numpy(x).any()


def test_a_loop_may_keep_what_it_wrote():
    def body(position, x, sums):
        x = shapes.write_at(x, ops.ones((2, 1)), position, axis=1)
        return position + 1, x, sums + ops.sum(x)

    def run():
        start = ops.convert_to_tensor(0), ops.zeros((2, 4)), ops.convert_to_tensor(0.0)
        return ops.while_loop(lambda i, x, s: i < 4, body, start)

    _, x, sums = backend.jit(run, xla=False)()
    assert float(sums) == 2 * (1 + 2 + 3 + 4)
    assert ops.convert_to_numpy(x).all()


@pytest.mark.parametrize("axis, start, size", [(0, 1, 1), (1, 0, 2), (2, 1, 3)])
def test_sections(axis, start, size):
    x = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    found = backend.section(ops.convert_to_tensor(x), start, size, axis)
    expected = x.take(range(start, start + size), axis)
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)


def test_a_section_of_unknown_size_keeps_the_other_sizes():
    if backend.name() != "tensorflow":
        pytest.skip("only TensorFlow has dynamic shapes")
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((None, None, 4))])
    def shorter(x):
        found = backend.section(x, 1, ops.shape(x)[1] - 1, axis=1)
        assert found.shape.as_list() == [None, None, 4]
        return found

    x = np.arange(24, dtype="float32").reshape(2, 3, 4)
    np.testing.assert_array_equal(shorter(x), x[:, 1:])


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def test_rows_change_places():
    x = numbers(2, 3, 4, 5)
    swapped = swap_rows(ops.convert_to_tensor(x))
    np.testing.assert_array_equal(swapped, x.transpose(0, 2, 1, 3))
    np.testing.assert_array_equal(swap_rows(swapped), x)
