"""The recurrent layers: against Keras' own LSTM, shapes, operations in the loop."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.models.lstm import LSTMDecoder
from keras_attnvariants.models.lstm import LSTMEncoder
from tests.models import tiny

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

UNITS, WIDTH = 6, 5


def inputs():
    """Vectors `[3, 7, 5]` and a mask of 7, 4 and 1 real tokens."""
    x = np.random.default_rng(0).normal(size=(3, 7, WIDTH)).astype("float32")
    return x, np.arange(7) < np.array([[7], [4], [1]])


def make_encoder(bidirectional, **options):
    layer = LSTMEncoder(UNITS, bidirectional, **options)
    layer.build((None, None, WIDTH))
    tiny.randomize(layer)
    return layer


def keras_order(array):
    """From our order of gates (input, forget, output, candidate) to that of Keras."""
    i, f, o, g = np.split(tiny.to_numpy(array), 4, axis=-1)
    return np.concatenate([i, f, g, o], axis=-1)


def keras_lstm(layer):
    """A Keras layer with the same weights that returns the same as ours."""
    lstm = keras.layers.LSTM(UNITS, return_sequences=True, return_state=True)
    bidirectional = len(layer.input_denses) == 2
    lstm = keras.layers.Bidirectional(lstm) if bidirectional else lstm
    lstm.build((None, None, WIDTH))
    weights = [
        [keras_order(w) for w in (dense.kernel, layer.recurrent_kernel[d], dense.bias)]
        for d, dense in enumerate(layer.input_denses)
    ]
    lstm.set_weights(sum(weights, []))
    return lstm


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_encoder_is_the_lstm_of_keras(bidirectional):
    layer = make_encoder(bidirectional)
    x, mask = inputs()
    hidden, state = layer(x, mask)
    expected, *states = keras_lstm(layer)(x, mask=mask)
    tiny.near(tiny.to_numpy(hidden)[mask], tiny.to_numpy(expected)[mask])
    for name, parts in (("hidden", states[::2]), ("cell", states[1::2])):
        tiny.near(state[name], np.concatenate([tiny.to_numpy(p) for p in parts], -1))


def test_padding_may_stand_on_either_side():
    layer = make_encoder(True)
    x, mask = inputs()
    hidden, state = layer(x, mask)
    moved, moved_state = layer(np.roll(x, 2, axis=1)[1:], np.roll(mask, 2, axis=1)[1:])
    expected = np.roll(tiny.to_numpy(hidden), 2, axis=1)[1:]
    real = np.roll(mask, 2, axis=1)[1:]
    tiny.near(tiny.to_numpy(moved)[real], expected[real])
    for name in ("hidden", "cell"):
        tiny.near(moved_state[name], tiny.to_numpy(state[name])[1:])


def test_initial_weights_are_orthogonal_with_an_open_forget_gate():
    layer = LSTMEncoder(UNITS, bidirectional=True)
    layer.build((None, None, WIDTH))
    kernels = tiny.to_numpy(layer.recurrent_kernel)
    for kernel in kernels:
        tiny.near(kernel @ kernel.T, np.eye(UNITS), 1e-5)
    assert np.abs(kernels[0] - kernels[1]).max() > 0.1
    for dense in layer.input_denses:
        forget = np.repeat([0.0, 1.0, 0.0, 0.0], UNITS)
        np.testing.assert_array_equal(tiny.to_numpy(dense.bias), forget)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "float16"])
def test_the_cell_state_is_kept_in_float32(dtype):
    layer = make_encoder(True, dtype=dtype)
    x, mask = inputs()
    hidden, state = layer(ops.cast(x, layer.compute_dtype), mask)
    decoder = LSTMDecoder(2 * UNITS, True, dtype=dtype)
    decoder.build((None, None, WIDTH))
    state = decoder.initial_state(decoder.prepare(hidden, state, mask), 4)
    dtypes = {name: ops.dtype(value) for name, value in state.items()}
    assert dtypes == {"hidden": layer.compute_dtype, "cell": "float32"}
    assert ops.dtype(hidden) == layer.compute_dtype


@pytest.mark.parametrize("units", [0, -3, 2.0, None])
def test_widths_must_be_positive_integers(units):
    with pytest.raises(ValueError, match=f"`units`.*Received: {units}"):
        LSTMEncoder(units)


@pytest.mark.skipif(backend.name() != "jax", reason="JAX shows what is in a loop")
def test_nothing_but_the_recurrence_is_in_the_loop():
    import jax

    layer = LSTMDecoder(2 * UNITS, True)
    layer.build((None, None, WIDTH))
    encoder = make_encoder(True)
    x, mask = inputs()

    def both(x):
        return layer(x, layer.prepare(*encoder(x, mask), mask))

    loops = [e for e in jax.make_jaxpr(both)(x).eqns if e.primitive.name == "scan"]
    counts = []
    for loop in loops:
        body = loop.params["jaxpr"].jaxpr
        shapes = [v.aval.shape for e in body.eqns for v in (*e.invars, *e.outvars)]
        assert not any(WIDTH in shape for shape in shapes)
        counts.append(str(body).count("dot_general"))
    # The recurrence; in the decoder also energies and attention's part of the gates.
    assert counts == [1, 3]
