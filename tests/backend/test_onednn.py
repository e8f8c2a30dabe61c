"""The product of oneDNN, and operators that enter a graph by their name."""

import itertools
import os
import platform
import subprocess
import sys

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
        attributes = {
            "T": {"type": tf.float32.as_datatype_enum},
            "transpose_a": {"b": True},
            "transpose_b": {"b": False},
        }
        return onednn.add_operator("MatMul", [x, y], attributes)

    x = np.arange(6.0, dtype="float32").reshape(3, 2)
    np.testing.assert_array_equal(product(x, x), x.T @ x)


@pytest.fixture
def afresh():
    """Forgets what is known of the processor, before and after the test."""
    onednn.is_onednn_exact.cache_clear()
    yield
    onednn.is_onednn_exact.cache_clear()


@pytest.mark.parametrize("operator", ["NoSuchOperator", "_FusedMatMul"])
def test_nothing_is_exact_where_there_is_no_kernel(monkeypatch, afresh, operator):
    monkeypatch.setattr(onednn, "OPERATOR", operator)
    assert not onednn.is_onednn_exact()


@pytest.mark.parametrize(("bits", "exact"), [(16, False), (32, True)])
def test_sums_that_overflow_are_found(monkeypatch, afresh, bits, exact):
    def product(rows, kernel, largest, kernel_largest):
        """The product of oneDNN without VNNI: unsigned bytes, added in pairs."""
        rows, kernel = (tf.cast(matrix, "int64") for matrix in (rows, kernel))
        terms = (rows + 128)[:, :, None] * kernel
        pairs = tf.reduce_sum(tf.reshape(terms, [255, -1, 2, 255]), axis=2)
        limit = 2 ** (bits - 1)
        pairs = tf.clip_by_value(pairs, -limit, limit - 1)
        sums = tf.reduce_sum(pairs, axis=1) - 128 * tf.reduce_sum(kernel, axis=0)
        return tf.cast(sums, "float32")

    monkeypatch.setattr(onednn, "onednn_product", product)
    assert onednn.is_onednn_exact() is exact


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86 processors do")
def test_a_processor_without_vnni_is_recognised():
    code = """
import tensorflow as tf
from keras_attnvariants.backend import onednn
sums = tf.function(onednn.sums_exactly, autograph=False)()  # there is a kernel
print(not sums and not onednn.is_onednn_exact())
"""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"True\n"


@pytest.mark.skipif(not onednn.is_onednn_exact(), reason="not on this processor")
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
        for rows in (5, 2, 5):  # arranged for the first one
            found = product(tf.constant(x[:rows], "int8"), transposed, constant)
            np.testing.assert_allclose(found, expected[:rows], rtol=1e-6)
