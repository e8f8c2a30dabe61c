"""Products of 8-bit integers, against those of Keras and of exact integers."""

import gc

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import products
from keras_attnvariants.backend.compilation import on_cpu
from keras_attnvariants.backend.onednn import is_onednn_exact
from tests.quantization import quantizing


def quantize(layer):
    with quantizing():
        layer.quantize("int8")


def dense(kind, policy):
    keras.utils.set_random_seed(3)
    layer = kind(24, activation="relu", bias_initializer="normal", dtype=policy)
    layer.build((None, 16))
    return layer


def embedding(kind, policy):
    keras.utils.set_random_seed(3)
    layer = kind(40, 16, reverse_dtype=policy.removeprefix("mixed_"), dtype=policy)
    layer.build((None,))
    return layer


LAYERS = {
    "dense": (dense, backend.Dense, keras.layers.Dense, {}),
    "embedding": (
        embedding,
        backend.ReversibleEmbedding,
        keras.layers.ReversibleEmbedding,
        {"reverse": True},
    ),
}


@pytest.fixture(params=["as here", "as floats"])
def form(request, monkeypatch):
    """The form of integer products on this processor, or on one without VNNI."""
    if request.param == "as floats":
        monkeypatch.setattr(products, "is_onednn_exact", lambda: False)


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("name", LAYERS)
def test_copies_of_quantized_layers_compute_what_keras_does(name, policy, xla, form):
    make, ours, theirs, options = LAYERS[name]
    layer, other = make(ours, policy), make(theirs, policy)
    quantize(layer)
    quantize(other)
    x = ops.cast(np.random.default_rng(0).normal(0, 2, (3, 5, 16)), layer.compute_dtype)
    copy = backend.jit(lambda x: backend.inference_copy(layer)(x, **options), xla=xla)
    result, expected = copy(x), other(x, **options)
    assert result.dtype == expected.dtype
    result, expected = (
        ops.convert_to_numpy(ops.cast(y, "float32")) for y in (result, expected)
    )
    tolerance = 1e-5 if policy == "float32" else 2e-2
    np.testing.assert_allclose(
        result, expected, atol=tolerance * np.abs(expected).max()
    )
    assert (result != 0).any()


@pytest.fixture
def multiply(form):
    if backend.name() != "tensorflow":
        pytest.skip("Keras multiplies integers on other backends")

    def product(x, kernel, scale, transposed):
        product = products.IntegerProduct(
            ops.convert_to_tensor(kernel),
            "float32",
            maxima=products.column_maxima(scale),
            transposed=transposed,
        )
        call = backend.jit(product, xla=False)
        return ops.convert_to_numpy(call(ops.convert_to_tensor(x)))

    return product


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rows", [1, 5, 320])
def test_products_of_integers_are_exact(multiply, rows, transposed):
    rng = np.random.default_rng(rows)
    x = rng.integers(-127, 128, (rows, 512))
    x[:, 0] = 127  # so that nothing is rounded
    kernel = rng.integers(-127, 128, (512, 64))
    scale = 2.0 ** rng.integers(-3, 3, 64)
    result = multiply(
        x.astype("float32"),
        (kernel.T if transposed else kernel).astype("int8"),
        scale.astype("float32"),
        transposed,
    )
    np.testing.assert_allclose(result, (x @ kernel) / scale, rtol=1e-6)


def test_rows_do_not_know_each_other(multiply):
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (6, 32)).astype("float32")
    kernel = rng.integers(-127, 128, (32, 8)).astype("int8")
    scale = np.ones(8, "float32")
    together = multiply(x, kernel, scale, False)
    x[1:] *= 1000
    np.testing.assert_array_equal(multiply(x, kernel, scale, False)[0], together[0])


def test_rows_of_zeros_give_zeros(multiply):
    kernel, scale = np.ones((8, 4), "int8"), np.ones(4, "float32")
    result = multiply(np.zeros((2, 8), "float32"), kernel, scale, False)
    np.testing.assert_array_equal(result, np.zeros((2, 4)))


@pytest.mark.skipif(
    backend.name() != "tensorflow" or not is_onednn_exact(),
    reason="fixed integers need oneDNN",
)
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("name", LAYERS)
def test_integers_that_are_fixed_change_nothing(name, policy):
    make, ours, _, options = LAYERS[name]
    layer = make(ours, policy)
    quantize(layer)
    x = ops.cast(np.random.default_rng(0).normal(0, 2, (7, 16)), layer.compute_dtype)
    plain = backend.jit(
        lambda x: backend.inference_copy(layer)(x, **options), xla=False
    )
    expected = plain(x)

    copy = backend.inference_copy(
        layer, lambda weight: ops.convert_to_numpy(weight.value), fixed=True
    )
    found = backend.jit(lambda x: copy(x, **options), xla=False)
    for rows in (x, x[:2], x):
        result, part = (
            ops.convert_to_numpy(ops.cast(y, "float32"))
            for y in (found(rows), expected[: rows.shape[0]])
        )
        # In a layer, Keras rounds the scales of columns to its compute dtype.
        rtol = 0 if policy == "float32" else 2.0**-6
        np.testing.assert_allclose(result, part, rtol=rtol)


def test_quantizing_does_not_search_all_objects_for_garbage(monkeypatch):
    spared = []
    monkeypatch.setattr(gc, "collect", lambda: spared.append(gc.get_freeze_count()))
    dense(backend.Dense, "float32").quantize("int8")
    assert spared and min(spared) > 10_000
    assert gc.get_freeze_count() < 10_000
    spared.clear()
    dense(keras.layers.Dense, "float32").quantize("int8")
    assert spared and max(spared) < 10_000  # or Keras does so itself


def test_sums_of_bfloat16_that_are_rounded_are_noticed(monkeypatch):
    """XLA keeps partial sums in float32; adding two halves of a sum does not."""
    probe = backend.sums_bfloat16_in_float32
    matmul = ops.matmul
    monkeypatch.setattr(ops, "matmul", backend.jit(matmul))
    assert probe()
    monkeypatch.setattr(ops, "matmul", lambda a, b: sum_of_halves(matmul, a, b))
    assert not probe()


def sum_of_halves(matmul, a, b):
    return matmul(a[:, :32], b[:32]) + matmul(a[:, 32:], b[32:])


@pytest.mark.skipif(backend.name() != "tensorflow", reason="oneDNN is of TensorFlow")
@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_bias_is_added_to_a_product_with_a_constant(dtype, use_bias):
    import tensorflow as tf

    kernel = tf.cast(tf.ones((4, 5)), dtype).numpy()
    bias = tf.cast(tf.range(5), dtype).numpy() if use_bias else None
    product = tf.function(products.Product(kernel, dtype, bias), autograph=False)
    x = tf.cast(tf.ones((3, 4)), dtype)
    operators = [
        op.type for op in product.get_concrete_function(x).graph.get_operations()
    ]
    assert operators.count("BiasAdd") + operators.count("AddV2") == 1
    expected = np.full((3, 5), 4) + (np.arange(5) if use_bias else 0)
    np.testing.assert_array_equal(tf.cast(product(x), "float32"), expected)


def widths(product, x):
    """The numbers of columns of the matrices of a graph's products."""
    graph = product.get_concrete_function(x).graph
    return [
        op.inputs[1].shape[1] for op in graph.get_operations() if op.type == "MatMul"
    ]


@pytest.mark.skipif(
    backend.name() != "tensorflow" or not on_cpu(), reason="not faster elsewhere"
)
@pytest.mark.parametrize("activation", [None, "softmax"])
@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize(
    ("columns", "constant", "padding"),
    [(32, True, 16), (32, False, 0), (40, True, 0), (512, False, 16), (512, True, 16)],
)
def test_columns_of_zeros_change_no_output(
    columns, constant, padding, use_bias, activation
):
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    options = {"use_bias": use_bias, "bias_initializer": "normal"}
    layer = backend.Dense(columns, activation, **options)
    x = tf.random.normal((2, 3, 8))
    expected = layer(x)
    fixed = backend.inference_copy(layer, lambda weight: weight.numpy())

    @tf.function(autograph=False)
    def product(x):
        return (fixed if constant else backend.inference_copy(layer))(x)

    assert widths(product, x) == [columns + padding]
    np.testing.assert_allclose(product(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_zeros_are_added_where_that_is_not_faster(dtype, monkeypatch):
    kernel = ops.ones((4, 512), dtype)
    if dtype == "float32":
        monkeypatch.setattr(products, "in_xla", lambda: True)
    assert not products.needs_padding(kernel, dtype)
