"""The product of oneDNN, and operators that enter a graph by their name."""

import itertools

import numpy as np
import pytest

from keras_attnvariants import backend
from keras_attnvariants.backend import onednn

if backend.name() != "tensorflow":
    pytest.skip("oneDNN is a part of TensorFlow", allow_module_level=True)

import tensorflow as tf  # noqa: E402


def test_an_operator_has_its_inputs_and_attributes():
    @tf.function
    def product(x, y):
        attributes = {"T": tf.float32, "transpose_a": True, "transpose_b": False}
        return onednn.add_operator("MatMul", [x, y], attributes)

    x = np.arange(6.0, dtype="float32").reshape(3, 2)
    np.testing.assert_array_equal(product(x, x), x.T @ x)


def test_attributes_of_every_kind():
    values = {
        "b": True,
        "s": b"name",
        "type": tf.int32,
    }
    for field, value in values.items():
        assert onednn.attribute(value).WhichOneof("value") == field
    listed = onednn.attribute([tf.int32, tf.float32]).list
    assert list(listed.type) == [tf.int32.as_datatype_enum, tf.float32.as_datatype_enum]
    assert list(onednn.attribute([b"a", b"b"]).list.s) == [b"a", b"b"]
    assert onednn.attribute([]).WhichOneof("value") == "list"


@pytest.mark.parametrize("operator", ["NoSuchOperator", "_FusedMatMul"])
def test_the_kernel_is_missed_where_there_is_none(monkeypatch, operator):
    onednn.has_onednn_product.cache_clear()
    monkeypatch.setattr(onednn, "OPERATOR", operator)
    assert not onednn.has_onednn_product()
    onednn.has_onednn_product.cache_clear()


@pytest.mark.skipif(not onednn.has_onednn_product(), reason="no such kernel here")
def test_products_are_exact_and_scaled_by_column():
    rng = np.random.default_rng(0)
    x, kernel = (rng.integers(-127, 128, shape) for shape in ((5, 16), (16, 4)))
    ends = 127 * 2.0 ** np.arange(4)

    @tf.function
    def product(x, transposed, constant):
        matrix = kernel.T if transposed else kernel
        return onednn.onednn_product(
            x,
            tf.constant(matrix, "int8"),
            tf.constant(127.0),
            tf.constant(ends, "float32"),
            transposed,
            constant,
        )

    expected = (x @ kernel) * 2.0 ** np.arange(4)
    for transposed, constant in itertools.product((False, True), repeat=2):
        for rows in (5, 2, 5):  # arranged for the first of them
            found = product(tf.constant(x[:rows], "int8"), transposed, constant)
            np.testing.assert_allclose(found, expected[:rows], rtol=1e-6)
