"""One softmax for all: float32 weights, and zeros where everything is masked."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import masked_softmax

DTYPES = pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
MASK = np.array(
    [
        [True, True, True, True],
        [True, False, True, False],
        [False, False, False, True],
        [False, False, False, False],
    ]
)


def logits_of(dtype, scale=1.0):
    values = scale * np.random.default_rng(0).normal(size=MASK.shape)
    return ops.cast(ops.convert_to_tensor(values.astype("float32")), dtype)


def numpy_softmax(logits, mask):
    weights = np.zeros_like(logits)
    for row, allowed, result in zip(logits, mask, weights, strict=True):
        if allowed.any():
            powers = np.exp(row[allowed] - row[allowed].max())
            result[allowed] = powers / powers.sum()
    return weights


def gradient(logits, mask, probe):
    """Gradient of `sum(masked_softmax * probe)` for the logits."""
    if backend.name() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = tf.reduce_sum(masked_softmax(logits, mask) * probe)
        return tape.gradient(loss, logits)
    import jax

    return jax.grad(lambda x: (masked_softmax(x, mask) * probe).sum())(logits)


@DTYPES
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_equals_numpy(dtype, scale):
    logits = logits_of(dtype, scale)
    weights = masked_softmax(logits, ops.convert_to_tensor(MASK))
    assert "float32" in str(weights.dtype)
    exact = ops.convert_to_numpy(ops.cast(logits, "float32")).astype("float64")
    expected = numpy_softmax(exact, MASK)
    np.testing.assert_allclose(ops.convert_to_numpy(weights), expected, atol=1e-6)


@DTYPES
def test_masked_entries_are_exactly_zero(dtype):
    weights = ops.convert_to_numpy(masked_softmax(logits_of(dtype), MASK))
    assert not weights[~MASK].any()
    np.testing.assert_allclose(weights.sum(-1), [1, 1, 1, 0], atol=1e-6)


@DTYPES
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_gradients_are_finite_and_zero_where_masked(dtype, scale):
    probe = np.random.default_rng(1).normal(size=MASK.shape).astype("float32")
    mask = ops.convert_to_tensor(MASK)
    found = gradient(logits_of(dtype, scale), mask, ops.convert_to_tensor(probe))
    found = ops.convert_to_numpy(ops.cast(found, "float32"))
    assert np.isfinite(found).all()
    assert not found[~MASK].any()


def test_gradient_equals_the_formula():
    probe = np.random.default_rng(1).normal(size=MASK.shape).astype("float32")
    logits, mask = logits_of("float32"), ops.convert_to_tensor(MASK)
    found = ops.convert_to_numpy(gradient(logits, mask, ops.convert_to_tensor(probe)))
    p = numpy_softmax(ops.convert_to_numpy(logits), MASK)
    expected = p * (probe - (p * probe).sum(-1, keepdims=True))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_largest_half_precision_logits():
    logits = ops.convert_to_tensor(np.array([[65504.0, -65504.0, 0.0]], "float16"))
    weights = ops.convert_to_numpy(masked_softmax(logits))
    np.testing.assert_array_equal(weights, [[1, 0, 0]])


def test_no_mask_is_all_true():
    logits = logits_of("float32")
    everything = ops.convert_to_tensor(np.ones_like(MASK))
    np.testing.assert_allclose(
        ops.convert_to_numpy(masked_softmax(logits)),
        ops.convert_to_numpy(masked_softmax(logits, everything)),
        atol=1e-7,
    )


def test_mask_broadcasts():
    logits = ops.convert_to_tensor(np.zeros((2, 3, 4), "float32"))
    mask = ops.convert_to_tensor(np.array([True, True, False, False]))
    weights = ops.convert_to_numpy(masked_softmax(logits, mask))
    np.testing.assert_allclose(weights, np.broadcast_to([0.5, 0.5, 0, 0], (2, 3, 4)))


@pytest.mark.parametrize("masked", [False, True])
def test_single_key_is_ordinary(masked):
    """A source of one token has weights of 1, without a warning."""
    logits = ops.convert_to_tensor(np.array([[3.0]], "float32"))
    mask = ops.convert_to_tensor(np.array([[not masked]]))
    weights = ops.convert_to_numpy(masked_softmax(logits, mask))
    np.testing.assert_array_equal(weights, [[0.0 if masked else 1.0]])


def test_single_key_has_a_gradient_of_zero():
    """It is not `None`: optimizers complain about variables without gradients."""
    logits = ops.convert_to_tensor(np.array([[3.0], [4.0]], "float32"))
    mask = ops.convert_to_tensor(np.array([[True], [False]]))
    found = gradient(logits, mask, ops.ones((2, 1)))
    np.testing.assert_array_equal(ops.convert_to_numpy(found), np.zeros((2, 1)))


def test_compiled_equals_eager():
    logits, mask = logits_of("float16", 100.0), ops.convert_to_tensor(MASK)
    np.testing.assert_allclose(
        ops.convert_to_numpy(backend.jit(masked_softmax)(logits, mask)),
        ops.convert_to_numpy(masked_softmax(logits, mask)),
        atol=1e-6,
    )
