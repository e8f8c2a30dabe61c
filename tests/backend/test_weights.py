"""The scope in which matrices are read in their compute dtype."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import cast_matrices
from keras_attnvariants.backend import project_jointly
from keras_attnvariants.backend.weights import joint_kernels
from keras_attnvariants.backend.weights import weights_of
from tests.quantization import quantizing


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
    assert dtypes["kernel"] == dtypes["bias"] == dtypes["embeddings"] == compute
    assert dtypes["gamma"] == "float32"
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


def test_only_matrices_and_biases_count():
    layers = model("mixed_bfloat16").layers
    dense = layers[1].layers[0]
    assert weights_of(layers[0]) == [layers[0].embeddings]
    assert weights_of(dense) == [dense.kernel, dense.bias]
    assert weights_of(layers[2]) == [layers[2].kernel]
    assert weights_of(layers[-1]) == []


class Projections(keras.layers.Layer):
    """Three projections of the same inputs."""

    def __init__(self, units=(3, 3, 3), use_bias=False, dense=keras.layers.Dense):
        super().__init__()
        self.parts = [dense(n, use_bias=use_bias) for n in units]
        self.joint_projections = tuple(self.parts)

    def build(self, shape):
        for part in self.parts:
            part.build(shape)
            if part.bias is not None:
                part.bias.assign(np.arange(part.units))

    def call(self, x):
        return project_jointly(self.joint_projections, x)


@pytest.mark.parametrize(
    "options",
    [{}, {"units": (3, 3, 2)}, {"use_bias": True}],
)
def test_joint_projections_are_those_of_the_layers(options):
    layer = Projections(**options)
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    expected = [ops.convert_to_numpy(part) for part in layer(x)]
    with cast_matrices(layer):
        found = [ops.convert_to_numpy(part) for part in layer(x)]
        assert joint_kernels(layer)
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("use_bias", [False, True])
def test_joint_projections_have_the_dtype_of_the_computation(use_bias):
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        layer = Projections(use_bias=use_bias)
    finally:
        keras.config.set_dtype_policy("float32")
    x = ops.ones((2, 5, 4), "bfloat16")
    layer(x)
    with cast_matrices(layer):
        assert joint_kernels(layer)
        found = {keras.backend.standardize_dtype(part.dtype) for part in layer(x)}
    assert found == {"bfloat16"}


@pytest.mark.parametrize("use_bias", [False, True])
def test_joint_projections_of_8_bit_integers_are_one_product(use_bias):
    if backend.name() != "tensorflow":
        pytest.skip("Keras multiplies integers on other backends")
    import tensorflow as tf

    layer = Projections(use_bias=use_bias, dense=backend.Dense)
    x = ops.convert_to_tensor(
        np.random.default_rng(0).normal(size=(2, 5, 4)), "float32"
    )
    layer(x)
    with quantizing():
        for part in layer.parts:
            part.quantize("int8")

    def jointly(x):
        with cast_matrices(layer):
            return layer(x)

    found, expected = (
        tf.function(call, autograph=False).get_concrete_function(x)
        for call in (jointly, layer)
    )
    operators = [op.type for op in found.graph.get_operations()]
    product = "_QuantizedMatMul" if backend.is_onednn_exact() else "MatMul"
    assert operators.count(product) == 1
    for mine, other in zip(found(x), expected(x), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_projections_of_unequal_inputs_stay_apart():
    layer = Projections()
    layer.parts[0].build((None, 4))
    for part in layer.parts[1:]:
        part.build((None, 6))
    with cast_matrices(layer):
        assert not joint_kernels(layer)
