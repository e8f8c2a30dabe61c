"""One program for any number of rows gives the same results as the function."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend


def sums(x, factors):
    """Rows of nested outputs, of several ranks and dtypes."""
    scaled = x * factors[:, None]
    return {"scaled": ops.cast(scaled, "bfloat16"), "sum": ops.sum(scaled, axis=-1)}


def arrays(rows):
    rng = np.random.default_rng(rows)
    return rng.normal(size=(rows, 3)).astype("float32"), np.arange(
        rows, dtype="float32"
    )


def checked(function, rows):
    x, factors = arrays(rows)
    found = function(ops.array(x), ops.array(factors))
    expected = x * factors[:, None]
    assert found["scaled"].shape == (rows, 3)
    np.testing.assert_allclose(found["sum"], expected.sum(-1), rtol=1e-5, atol=1e-5)
    narrow = ops.cast(ops.cast(expected, "bfloat16"), "float32")
    np.testing.assert_array_equal(ops.cast(found["scaled"], "float32"), narrow)


@pytest.mark.parametrize("compiled", [False, True])
def test_any_number_of_rows(compiled):
    function = backend.jit_by_rows(sums, rows=4)
    if compiled:
        function = backend.jit(function)
    for rows in (1, 4, 5, 12):
        checked(function, rows)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX compiles every shape"
)
def test_one_program_serves_all_numbers_of_rows():
    traced = []

    def counted(x, factors):
        traced.append(x.shape)
        return sums(x, factors)

    by_rows = backend.jit_by_rows(counted, rows=4)
    graph = backend.jit(by_rows, xla=False)
    for rows in (1, 4, 5, 12):
        checked(by_rows, rows)
        checked(graph, rows)
    assert traced == [(4, 3)]


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX compiles every shape"
)
@pytest.mark.parametrize(("rows", "loops"), [(4, 0), (5, 1)])
def test_rows_that_fit_into_one_block_need_no_loop(rows, loops):
    function = backend.jit(backend.jit_by_rows(sums, rows=4), xla=False)
    graph = function.get_concrete_function(*map(ops.array, arrays(rows))).graph
    assert sum("While" in node.type for node in graph.get_operations()) == loops
