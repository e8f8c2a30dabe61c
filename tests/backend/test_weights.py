"""The scope in which matrices are read in their compute dtype."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.backend import cast_matrices
from keras_attnvariants.backend.weights import matrix_of


def model(dtype):
    """An embedding and two products in nested layers, built."""
    layers = [
        keras.layers.Embedding(5, 4, dtype=dtype),
        keras.Sequential([keras.layers.Dense(3, dtype=dtype)]),
        keras.layers.EinsumDense("abc,cd->abd", (None, 2), dtype=dtype),
        keras.layers.LayerNormalization(dtype=dtype),
    ]
    whole = keras.Sequential(layers)
    whole.build((None, 3))
    return whole


IDS = np.array([[1, 2, 4]])


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_matrices_are_cast_and_results_are_the_same(dtype):
    whole = model(dtype)
    expected = ops.convert_to_numpy(ops.cast(whole(IDS), "float32"))
    with cast_matrices(whole):
        dtypes = {
            variable.name: keras.backend.standardize_dtype(variable.value.dtype)
            for variable in whole.weights
        }
        found = ops.convert_to_numpy(ops.cast(whole(IDS), "float32"))
    np.testing.assert_array_equal(found, expected)
    compute = dtype.removeprefix("mixed_")
    assert dtypes["kernel"] == dtypes["embeddings"] == compute
    assert dtypes["bias"] == dtypes["gamma"] == "float32"
    assert {w.value.dtype for w in whole.weights} == {whole.weights[0].value.dtype}


def test_weights_of_an_outer_scope_are_used():
    whole = model("float32")
    pairs = [(variable, ops.zeros_like(variable.value)) for variable in whole.weights]
    with keras.StatelessScope(state_mapping=pairs), cast_matrices(whole):
        assert not ops.convert_to_numpy(whole(IDS)).any()


def test_other_objects_are_left_alone():
    variable = keras.Variable(1.0)
    outer = keras.StatelessScope(state_mapping=[(variable, ops.array(2.0))])
    with outer, cast_matrices(object()):
        assert float(variable.value) == 2.0


def test_only_plain_matrices_count():
    layers = model("mixed_bfloat16").layers
    assert matrix_of(layers[0]) is layers[0].embeddings
    assert matrix_of(layers[-1]) is None
