"""Every variant: dropout, whatever its arguments are called, in training only."""

from contextlib import contextmanager

import keras
import numpy as np
import pytest

from tests.attention.conformance import BATCH
from tests.attention.conformance import LENGTH
from tests.attention.conformance import WIDTH
from tests.attention.conformance import built
from tests.attention.conformance import cases
from tests.attention.conformance import forward
from tests.attention.conformance import inputs
from tests.attention.conformance import to_numpy

RATE = 0.5


@contextmanager
def forced_dropout(chosen=None):
    """Sets the rate of all dropout layers made within to `RATE`.

    Args:
        chosen: the number of the only layer that drops anything; `None` for all.

    Yields:
        The list of the dropout layers.
    """
    made, initialize = [], keras.layers.Dropout.__init__

    def forced(self, rate, *args, **kwargs):
        rate = RATE if chosen in (None, len(made)) else 0.0
        made.append(self)
        initialize(self, rate, *args, **{**kwargs, "seed": 3})

    keras.layers.Dropout.__init__ = forced
    try:
        yield made
    finally:
        keras.layers.Dropout.__init__ = initialize


def twin(case, layer):
    """The layer, built, with the weights that the case's layer has."""
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    layer.set_weights(built(case).get_weights())
    return layer


def dropping(case, chosen=None):
    """A layer with the chosen dropout, and its dropout layers."""
    built(case)  # kept for other tests, so not made within the context
    with forced_dropout(chosen) as made:
        layer = twin(case, case.layer())
    return layer, made


def rates(case):
    """The names of the arguments that are rates of dropout."""
    names = [name for name in case.layer().get_config() if "dropout" in name]
    if not names:
        pytest.skip("has no dropout")
    return names


def check_dropout(case, layer):
    """Asserts that a layer drops in training only, and differently each time."""
    query, value = inputs(case)[:2]
    calm = to_numpy(case.call(built(case), query, value))
    for training in (False, None):
        output = case.call(layer, query, value, training=training)
        np.testing.assert_array_equal(to_numpy(output), calm)
    first, second = (
        to_numpy(case.call(layer, query, value, training=True)) for _ in range(2)
    )
    assert np.abs(first - calm).max() > 1e-2
    assert np.abs(first - second).max() > 1e-2


@cases("float32", one_on_jax=True)
def test_every_dropout_layer_drops_in_training_only(case):
    rates(case)
    made = dropping(case)[1]
    assert made, "no dropout layer behind the rates"
    for number in range(len(made)):
        check_dropout(case, dropping(case, number)[0])


@cases("float32", one_on_jax=True)
def test_dropout_survives_saving(case):
    for name in rates(case):
        layer = case.layer(**{name: RATE})
        loaded = keras.layers.deserialize(keras.layers.serialize(layer))
        check_dropout(case, twin(case, loaded))


@cases("float32", roles=("decoder", "cross"), one_on_jax=True)
def test_steps_drop_nothing(case):
    rates(case)
    value = inputs(case)[1]
    query = np.random.default_rng(2).normal(size=(BATCH, 2, WIDTH)).astype("float32")
    outputs = []
    for layer in (built(case), dropping(case)[0]):

        def step(query, value, layer=layer):
            memory = layer.prepare(value) if case.role == "cross" else None
            state = layer.initial_state(BATCH, 2, LENGTH, memory)
            _, state = layer.step(query, 0, state, memory)
            return layer.step(query, 1, state, memory)[0]

        outputs.append(to_numpy(forward(step, query, value)))
    np.testing.assert_array_equal(outputs[1], outputs[0])


@cases("float32", one_on_jax=True)
def test_scores_in_training_mode(case):
    case.need_scores()
    query, value = inputs(case)[:2]
    plain, (output, scores) = (
        case.call(
            dropping(case)[0],
            *(query, value),
            training=True,
            return_attention_scores=wanted,
        )
        for wanted in (False, True)
    )
    np.testing.assert_array_equal(to_numpy(output), to_numpy(plain))
    assert scores.shape == case.scores_shape
    # Dropout takes away no weight that is returned.
    calm = case.call(built(case), query, value, return_attention_scores=True)[1]
    np.testing.assert_array_equal(to_numpy(scores) > 0, to_numpy(calm) > 0)
