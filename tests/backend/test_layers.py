"""Dense layers, dropout and layer normalization, against those of Keras."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import Dropout
from keras_attnvariants.backend import Embedding
from keras_attnvariants.backend import LayerNormalization
from keras_attnvariants.backend import ReversibleEmbedding
from keras_attnvariants.backend import layers


def dropped(shape, rate=0.3, seed=1, dtype="float32"):
    layer = Dropout(rate, seed=seed, dtype=dtype)
    output = layer(ops.ones(shape, dtype), training=True)
    return ops.convert_to_numpy(ops.cast(output, "float32"))


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.9])
def test_share_of_zeros_is_the_rate(rate):
    zeros = (dropped((300, 1000), rate) == 0).mean()
    # Five standard deviations of a binomial share.
    assert abs(zeros - rate) < 5 * np.sqrt(rate * (1 - rate) / 300_000)


def test_kept_elements_are_scaled_so_that_the_mean_stays():
    values = np.unique(dropped((100, 100), 0.25))
    np.testing.assert_allclose(values, [0, 4 / 3], rtol=1e-6)


def test_neighbours_are_independent():
    kept = dropped((200, 1000), 0.5) > 0
    for shift in (1, 2, 3, 4):
        agreement = (kept[:, shift:] == kept[:, :-shift]).mean()
        assert abs(agreement - 0.5) < 0.006


def test_the_same_seed_gives_the_same_sequence_of_masks():
    layers = [Dropout(0.5, seed=7) for _ in range(2)]
    x = ops.ones((8, 33))
    first, second = (
        [ops.convert_to_numpy(layer(x, training=True)) for _ in range(2)]
        for layer in layers
    )
    np.testing.assert_array_equal(first, second)
    assert (first[0] != first[1]).any()


def test_nothing_is_dropped_in_inference_or_at_rate_zero():
    x = np.arange(6.0, dtype="float32")
    np.testing.assert_array_equal(Dropout(0.5)(x), x)
    np.testing.assert_array_equal(Dropout(0.0)(x, training=True), x)


def test_everything_is_dropped_at_rate_one():
    assert not dropped((3, 5), 1.0).any()


@pytest.mark.parametrize("shape", [(1,), (3,), (7, 5, 3), (0, 4)])
def test_odd_and_empty_shapes(shape):
    assert dropped(shape).shape == shape


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_kept(dtype):
    layer = Dropout(0.5, dtype=dtype)
    output = layer(ops.ones((4, 4), dtype), training=True)
    assert keras.backend.standardize_dtype(output.dtype) == dtype


@pytest.mark.parametrize("xla", [False, True])
def test_compiled_masks_are_the_eager_ones(xla):
    x = np.ones((5, 9), "float32")
    layer = Dropout(0.5, seed=3)
    state = layer.seed_generator.state

    eager = ops.convert_to_numpy(layer.stateless_call([], [state.value], x, True)[0])
    compiled = backend.jit(
        lambda x, s: layer.stateless_call([], [s], x, training=True)[0], xla=xla
    )
    np.testing.assert_array_equal(compiled(x, state.value), eager)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="needs dynamic shapes")
def test_dynamic_shapes_and_gradients():
    import tensorflow as tf

    layer = Dropout(0.5, seed=3)

    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, training=True)
        return output, tape.gradient(output, x)

    for shape in ((3, 5), (2, 4)):
        output, gradient = run(tf.fill(shape, 3.0))
        np.testing.assert_allclose(output, 3.0 * gradient)
        assert set(np.unique(gradient)) <= {0.0, 2.0}


@pytest.mark.skipif(backend.name() != "tensorflow", reason="reads a graph")
def test_the_gradient_remembers_a_byte_per_element():
    import tensorflow as tf

    layer = Dropout(0.5, seed=3)

    @tf.function(input_signature=[tf.TensorSpec([64]), tf.TensorSpec([64])])
    def gradient(x, upstream):
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, training=True)
        return tape.gradient(output, x, upstream)

    operations = gradient.get_concrete_function().graph.get_operations()
    backward = [op for op in operations if op.name.startswith("gradient_tape")]
    read = [x for op in backward for x in op.inputs if x.op not in backward]
    kept = [x for x in read if x.shape == (64,) and x.name != "upstream:0"]
    assert {x.dtype.name for x in kept} == {"bool"}


def test_config_round_trip():
    layer = Dropout(0.25, seed=5)
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    assert isinstance(copy, Dropout)
    assert (copy.rate, copy.seed) == (0.25, 5)


def test_bad_rate_is_refused():
    with pytest.raises(ValueError, match="rate.*Received: "):
        Dropout(1.5)


TOLERANCE = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 6e-2}


def layer(kind, dtype="float32", width=8):
    """A built layer whose weights are neither ones nor zeros."""
    built = kind(epsilon=1e-5, dtype=dtype)
    built.build((None, None, width))
    rng = np.random.default_rng(1)
    built.set_weights([rng.normal(size=width).astype("float32") for _ in range(2)])
    return built


def value_and_gradients(layer, x, probe, **options):
    """The output, and gradients of its sum with weights `probe`, as float32."""
    dtype = layer.compute_dtype
    x, probe = (keras.ops.cast(keras.ops.array(part), dtype) for part in (x, probe))
    if backend.name() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, **options)
            value = tf.reduce_sum(y * probe)
        found = [y, *tape.gradient(value, [x, *layer.trainable_variables])]
    else:
        import jax

        def output(x, weights):
            return layer.stateless_call(weights, [], x, **options)[0]

        weights = [weight.value for weight in layer.trainable_variables]
        y, gradients = jax.vjp(output, x, weights)
        by_x, by_weights = gradients(probe)
        found = [y, by_x, *by_weights]
    return [keras.ops.convert_to_numpy(keras.ops.cast(v, "float32")) for v in found]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(2, 3, 8), (5, 8), (2, 2, 3, 8), (0, 3, 8)])
@pytest.mark.parametrize("training", [False, True])
def test_values_and_gradients_are_those_of_keras(dtype, shape, training):
    rng = np.random.default_rng(2)
    x, probe = rng.normal(1.0, 3.0, size=shape), rng.normal(size=shape)
    theirs = value_and_gradients(
        layer(keras.layers.LayerNormalization, dtype), x, probe
    )
    ours = value_and_gradients(
        layer(LayerNormalization, dtype), x, probe, training=training
    )
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == other.shape
        scale = max(1.0, np.abs(other).max(initial=0.0))
        np.testing.assert_allclose(mine, other, atol=TOLERANCE[dtype] * scale)


def test_layer_survives_serialization():
    built = layer(LayerNormalization)
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(built)
    )
    assert type(copy) is LayerNormalization
    assert copy.epsilon == 1e-5


def test_scale_and_offset_are_not_rounded():
    built = layer(LayerNormalization, "mixed_bfloat16")
    x = np.random.default_rng(4).normal(size=(50, 8)).astype("float32")
    x = keras.ops.cast(keras.ops.array(x), "bfloat16")
    found, expected = built(x), layer(LayerNormalization)(keras.ops.cast(x, "float32"))
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    found, expected = (
        keras.ops.convert_to_numpy(keras.ops.cast(y, "float32"))
        for y in (found, keras.ops.cast(expected, "bfloat16"))
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(backend.name() != "jax", reason="reads a program of JAX")
@pytest.mark.parametrize("kind", [Embedding, ReversibleEmbedding])
def test_a_table_is_not_cast_whose_gradients_would_be_summed_in_half_precision(kind):
    import jax

    layer = kind(3, 2, dtype="mixed_bfloat16")
    layer.build()
    table, ids = ops.convert_to_tensor(layer.embeddings), ops.ones((9,), "int32")

    def look_up(value):
        with keras.StatelessScope([(layer.embeddings, value)]):
            return layer(ids)

    program = str(jax.make_jaxpr(look_up)(table))
    assert "bf16[9,2]" in program
    assert "bf16[3,2]" not in program


@pytest.mark.parametrize("kind", [Embedding, ReversibleEmbedding])
def test_a_table_is_quantized(kind):
    layer = kind(3, 2)
    layer.build()
    layer.quantize("int8")
    assert {w.dtype for w in layer.weights if w.name == "embeddings"} == {"int8"}


@pytest.mark.skipif(backend.name() != "tensorflow", reason="XLA does not divide them")
@pytest.mark.parametrize(
    ("widths", "is_divided"),
    [((20, 512), True), ((512, 20), True), ((20, 500), False), ((512, 512), False)],
)
@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_gradients_in_parts_are_those_of_keras(
    widths, is_divided, use_bias, compiled, monkeypatch
):
    import tensorflow as tf

    calls = []
    divided = layers.divided_gradient_product

    def product(*matrices):
        calls.append(matrices)
        return divided(*matrices)

    monkeypatch.setattr(layers, "divided_gradient_product", product)
    rng = np.random.default_rng(0)
    inputs = ops.convert_to_tensor(rng.normal(size=(3, 7, widths[0])), "float32")
    factors = rng.normal(size=(3, 7, widths[1])).astype("float32")

    def gradients(kind):
        layer = kind(widths[1], use_bias=use_bias, activation="relu")
        layer.build(inputs.shape)
        rng = np.random.default_rng(1)
        layer.set_weights([rng.normal(size=w.shape) for w in layer.weights])

        def run(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                outputs = layer(x, training=True)
            weights = [weight.value for weight in layer.weights]
            return outputs, tape.gradient(outputs, [x, *weights], factors)

        return (tf.function(run) if compiled else run)(inputs)

    found, expected = gradients(Dense), gradients(keras.layers.Dense)
    assert bool(calls) == is_divided
    for one, other in zip(*map(tf.nest.flatten, (found, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4)


def test_gradients_are_in_one_part_in_inference_and_bfloat16(monkeypatch):
    monkeypatch.setattr(layers, "divided_gradient_product", None)
    for policy, training in (("float32", False), ("mixed_bfloat16", True)):
        layer = Dense(512, dtype=policy)
        assert layer(ops.ones((2, 20)), training=training).shape == (2, 512)
