"""Copies of models whose layers hold weights in the form that decoding uses."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.backend import inference_copy
from keras_attnvariants.backend import project_jointly
from keras_attnvariants.backend import shallow_copy
from keras_attnvariants.backend.products import Product
from keras_attnvariants.backend.products import Table
from tests.quantization import quantizing


@dataclasses.dataclass(frozen=True)
class Parts:
    """Holds a layer without being one."""

    dense: keras.layers.Layer


class Net(keras.layers.Layer):
    """Has layers in attributes, in containers, in other objects, and twice."""

    def __init__(self, dtype, embedding=keras.layers.Embedding):
        super().__init__(dtype=dtype)
        self.embedding = embedding(5, 4, dtype=dtype)
        self.dense = backend.Dense(3, activation="relu", dtype=dtype)
        self.others = [keras.layers.Dense(4, use_bias=False, dtype=dtype)]
        self.einsum = keras.layers.EinsumDense("abc,cd->abd", (None, 4), dtype=dtype)
        self.norm = keras.layers.LayerNormalization(dtype=dtype)
        self.parts = Parts(self.others[0])
        self.apply = self.others[0].__call__

    def build(self, shape=None):
        self.embedding.build((None, None))
        self.dense.build((None, None, 4))
        self.others[0].build((None, None, 3))
        self.einsum.build((None, None, 4))
        self.norm.build((None, None, 4))
        for weight in self.weights:
            value = np.random.default_rng(len(weight.shape)).normal(size=weight.shape)
            weight.assign(value)

    def call(self, ids):
        x = self.others[0](self.dense(self.embedding(ids)))
        x = x + self.parts.dense(self.dense(self.embedding(ids)))
        return self.norm(self.einsum(x))


def built(dtype="float32", **options):
    net = Net(dtype, **options)
    net.build()
    net.built = True
    return net


IDS = np.array([[1, 2, 4]])


def values(tensor):
    return ops.convert_to_numpy(ops.cast(tensor, "float32"))


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_a_copy_computes_the_same_with_matrices_in_the_compute_dtype(dtype):
    net = built(dtype)
    copy = inference_copy(net)
    np.testing.assert_array_equal(values(copy(IDS)), values(net(IDS)))
    assert isinstance(copy.dense, Product) and isinstance(copy.others[0], Product)
    assert copy.parts.dense is copy.others[0] and copy.apply.__self__ is copy.others[0]
    compute = dtype.removeprefix("mixed_")
    for matrix in (copy.dense.kernel, copy.dense.bias, copy.einsum.kernel):
        assert keras.backend.standardize_dtype(matrix.dtype) == compute
    assert keras.backend.standardize_dtype(copy.norm.gamma.dtype) == "float32"
    assert isinstance(net.dense, keras.layers.Dense) and len(net.weights) == 7


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_an_embedding_that_projects_back_is_a_table(dtype):
    layer = backend.ReversibleEmbedding(5, 4, reverse_dtype="float32", dtype=dtype)
    layer.build((None,))
    table = inference_copy(layer)
    assert isinstance(table, Table)
    np.testing.assert_array_equal(values(table(IDS)), values(layer(IDS)))
    rows = ops.ones((2, 3, 4), table.product.dtype)
    found, expected = table(rows, reverse=True), layer(rows, reverse=True)
    np.testing.assert_allclose(values(found), values(expected), rtol=0.02, atol=1e-3)


def test_the_values_of_the_current_scope_are_copied():
    net = built()
    pairs = [(variable, ops.zeros_like(variable.value)) for variable in net.weights]
    with keras.StatelessScope(state_mapping=pairs):
        copy = inference_copy(net)
        assert not values(copy(IDS)).any()
    assert values(net(IDS)).any()


def test_arrays_become_constants_of_a_graph():
    if backend.name() != "tensorflow":
        pytest.skip("on JAX, arrays are constants anyway")
    import tensorflow as tf

    net = built()
    copy = inference_copy(net, lambda weight: values(weight.value))
    assert isinstance(copy.dense.kernel, np.ndarray)
    ids = tf.constant(IDS)
    call = tf.function(copy, autograph=False).get_concrete_function(ids)
    assert not call.variables
    np.testing.assert_allclose(values(call(ids)), values(net(ids)), rtol=1e-5)


def test_a_layer_with_lora_computes_with_what_it_learned():
    net = built()
    net.dense.enable_lora(2)
    net.dense.lora_kernel_b.assign(np.ones((2, 3)))
    np.testing.assert_allclose(
        values(inference_copy(net)(IDS)), values(net(IDS)), rtol=1e-5
    )


def test_a_shallow_copy_has_other_attributes():
    net = built()
    copy = shallow_copy(net, others=[])
    assert copy.others == [] and copy.dense is net.dense and len(net.others) == 1


class Projections(keras.layers.Layer):
    """Three projections of the same inputs."""

    def __init__(self, units=(3, 3, 3), use_bias=False, dense=keras.layers.Dense):
        super().__init__()
        self.parts = [dense(n, use_bias=use_bias) for n in units]

    def joint_projections(self):
        return [tuple(self.parts)]

    def build(self, shape):
        for part in self.parts:
            part.build(shape)
            if part.bias is not None:
                part.bias.assign(np.arange(part.units))

    def call(self, x):
        return project_jointly(self.joint_projections()[0], x)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"units": (3, 3, 2)},
        {"use_bias": True},
        # Columns of zeros follow the joint matrix, and each of its parts.
        {"units": (256, 256, 512), "use_bias": True},
    ],
)
def test_joint_projections_are_those_of_the_layers(options):
    layer = Projections(**options)
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    expected = [ops.convert_to_numpy(part) for part in layer(x)]
    copy = inference_copy(layer)
    assert len(copy.parts[0].joint) == 1
    found = [ops.convert_to_numpy(part) for part in copy(x)]
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
    copy = inference_copy(layer)
    assert copy.parts[0].joint
    found = {keras.backend.standardize_dtype(part.dtype) for part in copy(x)}
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
        return inference_copy(layer)(x)

    def apart(x):
        return [inference_copy(part)(x) for part in layer.parts]

    found, expected = (
        tf.function(call, autograph=False).get_concrete_function(x)
        for call in (jointly, apart)
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
    layer.built = True
    assert not inference_copy(layer).parts[0].joint


def test_a_template_of_a_layer_has_no_projections_to_join():
    template = DotProductAttention(num_heads=2)
    copy = inference_copy({"template": template})["template"]
    assert type(copy) is DotProductAttention and not copy.built
