"""Scans and custom gradients, against loops and those of the backend."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend

BATCH, WIDTH = 2, 3
LENGTHS = pytest.mark.parametrize("length", [1, 2, 5])
MODES = pytest.mark.parametrize("mode", ["eager", "graph", "xla"])


def step(state, x):
    """Uses its state in nested structures, and outputs two tensors."""
    hidden = ops.tanh(ops.matmul(state["hidden"], x["matrix"]) + x["row"])
    kept = ops.where(x["on"][:, None], hidden, state["hidden"])
    count, total = state["sums"]
    total = total + ops.sum(kept * kept, axis=-1)
    state = {"hidden": kept, "sums": (count + 1, total)}
    return state, (hidden * total[:, None], {"total": total})


def arrays(length, seed=0):
    rng = np.random.default_rng(seed)
    initial = {
        "hidden": rng.normal(size=(BATCH, WIDTH)).astype("float32"),
        "sums": (np.int32(0), np.zeros(BATCH, "float32")),
    }
    inputs = {
        "matrix": rng.normal(size=(length, WIDTH, WIDTH)).astype("float32"),
        "row": rng.normal(size=(length, BATCH, WIDTH)).astype("float32"),
        "on": rng.random((length, BATCH)) < 0.7,
    }
    return initial, inputs


def unrolled(step, initial, inputs):
    """The same as `scan`, as a loop of Python."""
    state, outputs = initial, []
    for t in range(len(keras.tree.flatten(inputs)[0])):
        x = keras.tree.map_structure(lambda leaf, t=t: leaf[t], inputs)
        state, output = step(state, x)
        outputs.append(output)
    return state, keras.tree.map_structure(lambda *x: ops.stack(x), *outputs)


def tensors(structure):
    return keras.tree.map_structure(ops.convert_to_tensor, structure)


def value_and_gradients(loop):
    """Function of `(initial, inputs)`: all results, and gradients of their sum."""

    def results(hidden, matrix, row, initial, inputs):
        initial = {**initial, "hidden": hidden}
        found = loop(step, initial, {**inputs, "matrix": matrix, "row": row})
        leaves = keras.tree.flatten(found)
        return sum(ops.sum(ops.cast(leaf, "float32")) for leaf in leaves), found

    def both(initial, inputs):
        arguments = (initial["hidden"], inputs["matrix"], inputs["row"])
        if backend.name() == "tensorflow":
            import tensorflow as tf

            with tf.GradientTape() as tape:
                tape.watch(arguments)
                loss, found = results(*arguments, initial, inputs)
            return found, tape.gradient(loss, arguments)
        import jax

        gradient = jax.grad(results, argnums=(0, 1, 2), has_aux=True)
        gradients, found = gradient(*arguments, initial, inputs)
        return found, gradients

    return both


def compiled(function, mode):
    return function if mode == "eager" else backend.jit(function, xla=mode == "xla")


def check_same(found, expected):
    keras.tree.assert_same_structure(found, expected)
    pairs = zip(keras.tree.flatten(found), keras.tree.flatten(expected), strict=True)
    for actual, wanted in pairs:
        actual, wanted = map(ops.convert_to_numpy, (actual, wanted))
        assert actual.dtype == wanted.dtype
        scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
        np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-5 * scale)


@MODES
@LENGTHS
def test_equals_the_unrolled_loop(length, mode):
    structure = tensors(arrays(length))
    found = compiled(value_and_gradients(backend.scan), mode)(*structure)
    expected = value_and_gradients(unrolled)(*structure)
    check_same(found, expected)
    assert all(np.abs(ops.convert_to_numpy(g)).max() > 1e-3 for g in found[1])


@pytest.mark.parametrize("xla", [False, True])
def test_lengths_may_be_dynamic(xla):
    if backend.name() != "tensorflow":
        pytest.skip("only TensorFlow has dynamic shapes")
    import tensorflow as tf

    def spec(array):
        array = np.asarray(array)
        shape = [None if size in (BATCH, 5) else size for size in array.shape]
        return tf.TensorSpec(shape, array.dtype)

    both = value_and_gradients(backend.scan)
    dynamic = tf.function(
        both,
        input_signature=keras.tree.map_structure(spec, arrays(5)),
        jit_compile=xla,
        autograph=False,
    )
    for length in (5, 1, 8):
        structure = tensors(arrays(length, seed=length))
        expected = value_and_gradients(unrolled)(*structure)
        check_same(dynamic(*structure), expected)
    assert dynamic.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_no_step_at_all(mode):
    initial, inputs = tensors(arrays(0))

    def run(initial, inputs):
        return backend.scan(step, initial, inputs)

    state, (first, second) = compiled(run, mode)(initial, inputs)
    check_same(state, initial)
    assert first.shape == (0, BATCH, WIDTH)
    assert second["total"].shape == (0, BATCH)


def test_state_must_keep_its_structure():
    with pytest.raises((TypeError, ValueError)):
        backend.scan(lambda s, x: ((s, s), x), ops.zeros(()), ops.ones((3,)))


def test_unknown_backend_is_refused(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "openvino")
    with pytest.raises(ValueError, match="tensorflow.*Received: 'openvino'"):
        backend.scan(step, *arrays(2))


@pytest.mark.parametrize("xla", [False, True])
def test_the_last_input_may_come_first(xla):
    def run(x):
        return backend.scan(lambda s, x: (s + x, s + x), ops.zeros(()), x, reverse=True)

    total, sums = backend.jit(run, xla=xla)(ops.convert_to_tensor([1.0, 2.0, 4.0]))
    assert float(total) == 7
    np.testing.assert_array_equal(ops.convert_to_numpy(sums), [7, 6, 4])


X = np.array([1.0, 2.0, 3.0], "float32")


def gradient_of(function, x):
    """The gradient of the sum of what a function returns."""
    if backend.name() == "tensorflow":
        import tensorflow as tf

        x = tf.convert_to_tensor(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = ops.sum(function(x))
        return tape.gradient(total, x)
    import jax

    return jax.grad(lambda x: ops.sum(function(x)))(x)


def of_one_output(x):
    """The value `5 x`, with the incoming gradient times `2 x`; `x` is saved."""
    return backend.with_gradient(5 * x, x, lambda given, saved: 2 * given * saved, x)


def of_two_outputs(x):
    """One input is unused, and inputs and saved values are structures."""
    found = backend.with_gradient(
        {"used": 5 * x, "unused": x},
        (x,),
        lambda given, saved: (given["used"] * saved["factor"] + given["unused"],),
        {"factor": 3 * x},
    )
    return found["used"]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("function, factor", [(of_one_output, 2), (of_two_outputs, 3)])
def test_the_gradient_is_the_given_one(function, factor, compiled):
    x = ops.convert_to_tensor(X)
    np.testing.assert_array_equal(ops.convert_to_numpy(function(x)), 5 * X)

    def both(x):
        return gradient_of(function, x)

    found = (backend.jit(both) if compiled else both)(x)
    np.testing.assert_allclose(ops.convert_to_numpy(found), factor * X)
