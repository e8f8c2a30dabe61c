"""Compiled functions, and values that graphs of TensorFlow share."""

import os
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import compilation
from keras_attnvariants.backend import constant
from keras_attnvariants.backend import keep_result
from keras_attnvariants.backend import kept_result
from keras_attnvariants.backend import shared_tensor


def test_name_is_the_backend_that_was_asked_for():
    assert backend.name() == os.environ["KERAS_BACKEND"] == keras.config.backend()


def test_a_function_that_is_compiled_again_and_again_does_not_alarm_tensorflow(caplog):
    def double(x):
        return x * 2

    for length in range(1, 9):
        assert float(backend.jit(double)(ops.ones((length,)))[-1]) == 2.0
    assert not caplog.records


@pytest.mark.parametrize("xla", [True, False])
def test_compiled_function_gives_the_same(xla):
    def function(state, x):
        return {"sum": state["sum"] + x, "product": ops.matmul(x, x)}, ops.max(x)

    x = ops.convert_to_tensor(np.arange(9.0, dtype="float32").reshape(3, 3))
    state = {"sum": ops.ones((3, 3))}
    found = backend.jit(function, xla=xla)(state, x)
    expected = function(state, x)
    keras.tree.assert_same_structure(found, expected)
    pairs = zip(keras.tree.flatten(found), keras.tree.flatten(expected), strict=True)
    for actual, wanted in pairs:
        np.testing.assert_allclose(
            ops.convert_to_numpy(actual), ops.convert_to_numpy(wanted)
        )


def test_traced_once_per_shape():
    traced = []

    def function(x):
        traced.append(x.shape)
        return x + 1

    compiled = backend.jit(function)
    for length in (2, 3, 2, 3, 3):
        compiled(ops.zeros((length,)))
    assert [tuple(shape) for shape in traced] == [(2,), (3,)]


@pytest.mark.skipif(backend.name() != "tensorflow", reason="shapes are fixed on JAX")
def test_traced_once_for_all_sizes():
    traced = []

    def function(weights, x, y):
        traced.append((*weights, x, y))
        return ops.matmul(x, weights[0]) * y

    weights = [ops.ones((3, 2))]
    pairs = [(ops.ones((rows, 3)), ops.ones((rows, 1))) for rows in (4, 1, 9)]
    compiled = backend.jit_for_any_sizes(function, weights, *pairs[0])
    for x, y in pairs:
        found = compiled([2 * weights[0]], x, y)
        np.testing.assert_array_equal(found, np.full((len(x), 2), 6.0))
    [shapes] = [[tuple(x.shape) for x in each] for each in traced]
    assert shapes == [(3, 2), (None, None), (None, None)]


def test_xla_really_compiles():
    if backend.name() != "tensorflow":
        pytest.skip("JAX has no other way")
    import tensorflow as tf

    compiled = backend.jit(lambda x: x * 2)
    text = compiled.experimental_get_compiler_ir(tf.zeros((3,)))(stage="hlo")
    assert "HloModule" in text


def test_unknown_backend_is_refused(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "openvino")
    with pytest.raises(ValueError, match="tensorflow.*Received: 'openvino'"):
        backend.jit(lambda x: x)


@pytest.mark.parametrize(
    "policy, quantization, gains",
    [
        ("float32", None, True),
        ("mixed_bfloat16", None, False),
        ("float32", "int8", False),
    ],
)
def test_xla_is_for_what_it_makes_faster(policy, quantization, gains):
    layer = keras.layers.Dense(2, dtype=policy)
    layer.quantization = quantization
    if backend.name() == "tensorflow":
        import tensorflow as tf

        gains = gains or bool(tf.config.get_visible_devices("GPU"))
        assert backend.gains_from_xla(layer) == gains
    else:
        assert backend.gains_from_xla(layer)
    assert backend.gains_from_xla(object())


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="only JAX keeps programs")
def test_programs_are_kept(tmp_path):
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    before = {
        option: getattr(jax.config, option)
        for option in (
            "jax_compilation_cache_dir",
            "jax_persistent_cache_min_compile_time_secs",
        )
    }
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        backend.keep_programs(tmp_path / "first")
        # A folder that is set in JAX already is kept.
        backend.keep_programs(tmp_path / "second")
        compilation_cache.reset_cache()
        backend.jit(lambda x: ops.sin(x) * 3 - 1)(ops.ones((3,)))
        assert list((tmp_path / "first").glob("*/*"))
        assert not (tmp_path / "second").exists()
    finally:
        for option, value in before.items():
            jax.config.update(option, value)
        compilation_cache.reset_cache()


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX keeps programs")
def test_tensorflow_keeps_no_programs(tmp_path):
    backend.keep_programs(tmp_path / "programs")
    assert not (tmp_path / "programs").exists()


TABLE = np.arange(200, dtype="float32")


def test_a_constant_is_what_it_was_made_from():
    np.testing.assert_array_equal(ops.convert_to_numpy(constant(TABLE)), TABLE)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(shared_tensor(constant(TABLE))), TABLE
    )


def test_other_values_are_not_shared():
    array, tensor = np.zeros(200), ops.zeros(200)
    assert shared_tensor(array) is array and shared_tensor(tensor) is tensor


ABOUT_GRAPHS = pytest.mark.skipif(
    keras.config.backend() != "tensorflow", reason="about graphs of TensorFlow"
)


@ABOUT_GRAPHS
def test_a_constant_is_part_of_every_graph():
    table = constant(TABLE)
    graph = tf.function(lambda x: x + table).get_concrete_function(tf.TensorSpec([]))
    np.testing.assert_array_equal(graph(tf.constant(1.0)), TABLE + 1)
    assert len(graph.inputs) == 1  # it captures nothing, so that exporters find it


@ABOUT_GRAPHS
def test_a_shared_constant_is_not_part_of_any_graph():
    table = constant(TABLE)

    @tf.function
    def first(x):
        return x + shared_tensor(table)

    @tf.function
    def second(x):
        return x * shared_tensor(table)

    captured = []
    for function, expected in ((first, TABLE + 1), (second, TABLE)):
        concrete = function.get_concrete_function(tf.TensorSpec([]))
        np.testing.assert_array_equal(concrete(tf.constant(1.0)), expected)
        nodes = concrete.graph.as_graph_def().node
        assert not any(node.op == "Const" for node in nodes)
        captured += concrete.captured_inputs
    assert captured[0] is captured[1]


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only TensorFlow keeps them")
def test_values_of_a_graph_are_found_by_both_tensors():
    found = []

    @tf.function
    def graph(x, y):
        double = 2 * x
        keep_result(x, y, (double,))
        found.extend(kept_result(*pair) for pair in ((x, y), (x, double), (y, x)))
        return found[0][0] is double

    assert graph(tf.constant(1.0), tf.constant(2.0))
    assert found[1:] == [None, None]


def test_values_of_an_inner_graph_are_not_kept():
    @tf.function
    def graph(x, y):
        @tf.function
        def inner():
            keep_result(x, y, x + y)
            return x + y

        inner()
        return kept_result(x, y) is None

    assert graph(tf.constant(1.0), tf.constant(2.0))


def test_nothing_is_kept_of_eager_tensors():
    x = tf.constant(1.0)
    keep_result(x, x, x + x)
    assert kept_result(x, x) is None


@pytest.mark.parametrize(
    ("seconds", "faster"), [(0.5, "bfloat16"), (0.9, "float32"), (2, "float32")]
)
def test_bfloat16_has_to_be_clearly_faster(seconds, faster, monkeypatch):
    monkeypatch.setattr(compilation, "bfloat16_cost", lambda: seconds)
    assert backend.faster_floats() == faster


def test_what_is_timed_is_a_product_of_the_dtype(monkeypatch):
    timed = {}

    def shortest(products, clock):
        timed.update({dtype: product() for dtype, product in products.items()})
        return {"bfloat16": 0.5, "float32": 2.0}

    monkeypatch.setattr(compilation, "shortest_seconds", shortest)
    assert backend.bfloat16_cost.__wrapped__() == 0.25
    assert timed == {"bfloat16": 512, "float32": 512}


def test_other_work_on_a_cpu_does_not_count(monkeypatch):
    for is_cpu, expected in ((True, time.process_time), (False, time.perf_counter)):
        monkeypatch.setattr(compilation, "on_cpu", lambda is_cpu=is_cpu: is_cpu)
        assert compilation.clock() is expected
