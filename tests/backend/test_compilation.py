"""Compiled functions, and values that graphs of TensorFlow share."""

import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import constant
from keras_attnvariants.backend import remember
from keras_attnvariants.backend import remembered


def test_name_is_the_backend_that_was_asked_for():
    assert backend.name() == os.environ["KERAS_BACKEND"] == keras.config.backend()


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


@pytest.mark.skipif(
    keras.config.backend() != "tensorflow", reason="about graphs of TensorFlow"
)
def test_a_constant_made_during_tracing_is_not_part_of_the_graph():
    import tensorflow as tf

    made = []

    @tf.function
    def first(x):
        made.append(constant(TABLE))
        return x + made[0]

    @tf.function
    def second(x):
        return x * made[0]

    for function, expected in ((first, TABLE + 1), (second, TABLE)):
        concrete = function.get_concrete_function(tf.TensorSpec([]))
        np.testing.assert_array_equal(concrete(tf.constant(1.0)), expected)
        nodes = concrete.graph.as_graph_def().node
        assert not any(node.op == "Const" for node in nodes)
    assert isinstance(made[0].numpy(), np.ndarray)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only TensorFlow keeps them")
def test_values_of_a_graph_are_found_by_both_tensors():
    found = []

    @tf.function
    def graph(x, y):
        double = 2 * x
        remember(x, y, (double,))
        found.extend(remembered(*pair) for pair in ((x, y), (x, double), (y, x)))
        return found[0][0] is double

    assert graph(tf.constant(1.0), tf.constant(2.0))
    assert found[1:] == [None, None]


def test_values_of_an_inner_graph_are_not_kept():
    @tf.function
    def graph(x, y):
        @tf.function
        def inner():
            remember(x, y, x + y)
            return x + y

        inner()
        return remembered(x, y) is None

    assert graph(tf.constant(1.0), tf.constant(2.0))


def test_nothing_is_kept_of_eager_tensors():
    x = tf.constant(1.0)
    remember(x, x, x + x)
    assert remembered(x, x) is None
