"""Every variant that says it is linear in length: calls, gradients, steps, states."""

import functools
import math

import keras
import numpy as np
import pytest
from keras import ops

from tests.attention.conformance import WIDTH
from tests.attention.conformance import built
from tests.attention.conformance import cases
from tests.attention.cost import work
from tests.attention.programs import output_and_gradients

# Long enough for a matrix of pairs to outweigh everything else.
LENGTH = 1024
# Twice the length costs twice as much; with a matrix of pairs, nearly four times.
TWICE = 2.2


def need_linear(case):
    """Skips a test if the variant does not claim to be linear in length."""
    if not case.layer().is_linear:
        pytest.skip("is not linear in length")


def sequences(length):
    query, value = np.zeros((2, 1, length, WIDTH), "float32")
    return query, value, np.ones((1, length), bool)


@cases("float32", one_on_jax=True)
def test_a_call_is_linear_in_length(case):
    need_linear(case)
    layer = built(case)  # not while it is traced

    def call(query, value, mask):
        return case.call(layer, query, value, value_mask=mask)

    short, long = (work(call, *sequences(n)) for n in (LENGTH, 2 * LENGTH))
    assert long <= TWICE * short


@cases("float32", one_on_jax=True)
def test_gradients_are_linear_in_length(case):
    need_linear(case)
    layer = built(case)  # not while it is traced

    def gradients(query, value, mask):
        call = functools.partial(case.call, layer, value_mask=mask)
        return output_and_gradients(layer, call, query, value, loss=ops.sum)

    short, long = (work(gradients, *sequences(n)) for n in (LENGTH, 2 * LENGTH))
    assert long <= TWICE * short


@cases("float32", roles=("decoder", "cross"), one_on_jax=True)
def test_a_step_costs_the_same_at_any_length(case):
    need_linear(case)
    layer = built(case)

    found = []
    for length in (LENGTH, 2 * LENGTH):
        _, value, mask = sequences(length)
        memory = layer.prepare(value, mask) if case.role == "cross" else None
        state = layer.initial_state(1, 2, length, memory)
        query = np.zeros((1, 2, WIDTH), "float32")
        inputs = [query, np.array(3, "int32"), state]
        inputs += [] if memory is None else [memory]
        sizes = [math.prod(leaf.shape) for leaf in keras.tree.flatten(state)]
        found.append((work(layer.step, *inputs), sum(sizes)))
    assert found[0] == found[1]
