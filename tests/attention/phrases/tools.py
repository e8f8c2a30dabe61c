"""Shared by the tests of phrase attention: structures, layers and inputs."""

import numpy as np

from keras_attnvariants.attention import Heterogeneous
from keras_attnvariants.attention import Homogeneous
from keras_attnvariants.attention import Interleaved
from keras_attnvariants.attention import PhraseAttention
from tests.attention.conformance import forward
from tests.attention.conformance import normal
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy

HEADS, WIDTH = 8, 16
BATCH, LENGTH = 2, 6
SCORINGS = ("conv_kv", "query_k", "query_k_by_order")
HOMOGENEOUS, HETEROGENEOUS = Homogeneous((4, 4)), Heterogeneous((1, 2))
INTERLEAVED, LOOKING_AHEAD = Interleaved(), Interleaved(look_ahead=True)
STRUCTURES = (HOMOGENEOUS, HETEROGENEOUS, INTERLEAVED, LOOKING_AHEAD)


def layer_of(structure, scoring="conv_kv", **options):
    layer = PhraseAttention(HEADS, structure, scoring, **options)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    randomize(layer)
    return layer


def inputs(*shape, seed=0):
    return normal(np.random.default_rng(seed), *(shape or (BATCH, LENGTH, WIDTH)))


def scores_of(layer, *arrays, **kwargs):
    _, scores = forward(layer, *arrays, return_attention_scores=True, **kwargs)
    return to_numpy(layer.split_scores(scores))  # [B, H, T, M, N, S]
