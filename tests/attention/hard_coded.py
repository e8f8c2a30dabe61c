"""Shared by the tests of hard-coded attention: inputs and calls."""

import numpy as np

from tests.attention.conformance import forward
from tests.attention.conformance import normal
from tests.attention.conformance import to_numpy

WIDTH = 8


def inputs(length, batch=2, seed=0):
    return normal(np.random.default_rng(seed), batch, length, WIDTH)


def call(layer, query, value, **kwargs):
    if not layer.built:
        layer.build(query.shape, value.shape)
    return forward(layer, query, value, **kwargs)


def scores_of(layer, *arrays, **kwargs):
    return to_numpy(call(layer, *arrays, return_attention_scores=True, **kwargs)[1])
