"""Gradients of whole sequences equal those of single steps, one after the other."""

import functools

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from tests.attention.conformance import SOURCE_LENGTH
from tests.attention.conformance import WIDTH
from tests.attention.conformance import near
from tests.attention.conformance import to_numpy
from tests.attention.programs import output_and_gradients
from tests.attention.recurrences.tools import NAMES
from tests.attention.recurrences.tools import ONE_BEAM
from tests.attention.recurrences.tools import arrays
from tests.attention.recurrences.tools import built


def unrolled(layer, query, value, value_mask):
    """`call` as a loop of Python over single steps."""
    memory = layer.prepare(value, value_mask)
    length = query.shape[1]
    state = layer.initial_state(query.shape[0], ONE_BEAM, length, memory)
    outputs = []
    for position in range(length):
        output, state = layer.step(
            query[:, position : position + 1], position, state, memory
        )
        outputs.append(output)
    return ops.concatenate(outputs, axis=1)


def gradients(layer, attend, mask):
    """Function of query and value: output and gradients of everything."""

    def call(query, value):
        return attend(layer, query, value, mask)

    return lambda query, value: output_and_gradients(layer, call, query, value)


def at_once(layer, query, value, mask):
    return layer(query, value, value_mask=mask)


@functools.cache
def known(name, use_bias, source_length=SOURCE_LENGTH):
    """A layer, its inputs, and the results of its single steps."""
    layer = built(name, use_bias=use_bias)
    query, value, mask = arrays()
    value = np.where(mask[..., None], value, 0)[:, :source_length]
    tensors = [ops.convert_to_tensor(x) for x in (query, value)]
    mask = ops.convert_to_tensor(mask[:, :source_length])
    steps = gradients(layer, unrolled, mask)
    # Eager operations are slow on JAX, compilation is slow on TensorFlow.
    steps = steps if backend.name() == "tensorflow" else backend.jit(steps)
    return layer, tensors, mask, steps(*tensors)


def check_gradients(found, expected):
    near(to_numpy(found[0]), to_numpy(expected[0]), 1e-5)
    assert set(found[1]) == set(expected[1])
    for key, gradient in expected[1].items():
        near(to_numpy(found[1][key]), to_numpy(gradient), 1e-5)


def names_and_modes(*fast):
    """All recurrences, as graphs and compiled by XLA; those not named are slow."""
    xla_alone = backend.name() == "jax"
    return pytest.mark.parametrize(
        "name, xla",
        [
            pytest.param(name, xla, marks=() if is_fast else pytest.mark.slow)
            for name in NAMES
            for xla in ((True,) if xla_alone else (False, True))
            for is_fast in [name in fast]
        ],
    )


@names_and_modes("context", "expanded_full")
def test_gradients_equal_those_of_single_steps(name, xla):
    layer, tensors, mask, expected = known(name, use_bias=True)
    found = backend.jit(gradients(layer, at_once, mask), xla=xla)(*tensors)
    check_gradients(found, expected)
    for key in found[1]:
        if key.startswith("recurrent"):
            assert np.abs(to_numpy(found[1][key])).max() > 1e-3


@pytest.mark.skipif(
    backend.name() != "tensorflow", reason="only TensorFlow has dynamic shapes"
)
@names_and_modes("context")
def test_gradients_with_dynamic_lengths(name, xla):
    import tensorflow as tf

    layer = known(name, use_bias=False)[0]
    specs = [tf.TensorSpec((None, None, WIDTH)), tf.TensorSpec((None, None, WIDTH))]

    def both(query, value):
        real = ops.any(ops.not_equal(value, 0.0), axis=-1)
        return gradients(layer, at_once, real)(query, value)

    dynamic = tf.function(both, input_signature=specs, jit_compile=xla, autograph=False)
    for source_length in (SOURCE_LENGTH, 3):
        _, tensors, _, expected = known(name, False, source_length)
        check_gradients(dynamic(*tensors), expected)
    assert dynamic.experimental_get_tracing_count() == 1
