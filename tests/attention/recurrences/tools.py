"""Shared by the tests of the recurrences: names, layers and inputs."""

import numpy as np

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention import recurrences
from tests import reference
from tests.attention.conformance import BATCH
from tests.attention.conformance import HEADS
from tests.attention.conformance import LENGTH
from tests.attention.conformance import SOURCE_LENGTH
from tests.attention.conformance import WIDTH
from tests.attention.conformance import forward
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy

NAMES = tuple(recurrences.RECURRENCES)
EXPANDED = tuple(name for name in NAMES if name.startswith("expanded"))
ONE_BEAM = 1


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    query = normal(rng, BATCH, LENGTH, WIDTH)
    value = normal(rng, BATCH, SOURCE_LENGTH, WIDTH)
    return query, value, lengths_mask([SOURCE_LENGTH, 4, 1], SOURCE_LENGTH)


def built(recurrence, **options):
    layer = RecurrentCrossAttention(HEADS, recurrence, **options)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    randomize(layer)
    return layer


def worked(recurrence, kernels, query, source):
    """Output and scores of one head with given kernels, and those of its reference."""
    layer = RecurrentCrossAttention(1, recurrence)
    query, source = (np.array(x, "float32")[None] for x in (query, source))
    layer.build(query.shape, source.shape)
    for weight in layer.weights:
        name = weight.path.split("/")[-2]
        kernel = np.array(kernels.get(name, np.eye(query.shape[-1])))
        weight.assign(kernel.reshape(weight.shape))
    weights = reference.layer_weights(layer)
    naive = reference.REFERENCES["RecurrentCrossAttention"]
    expected = naive(layer.get_config(), weights, query, source)
    found = forward(layer, query, source, return_attention_scores=True)
    return [
        (to_numpy(found[0])[0], to_numpy(found[1])[0, 0]),
        (expected[0][0], expected[1][0, 0]),
    ]


def scores_of(layer, query, value, **kwargs):
    """The weights over the source, `[B, H, T, S]`."""
    return to_numpy(
        forward(layer, query, value, return_attention_scores=True, **kwargs)[1]
    )


def check_baseline(layer, query, value, mask):
    """Asserts that a layer is plain attention with the same projections."""
    plain = DotProductAttention(HEADS)
    plain.build(query.shape, value.shape)
    for mine, theirs in (
        (layer.query_dense, plain.query_dense),
        (layer.key_dense, plain.key_dense),
        (layer.value_dense, plain.value_dense),
        (layer.output_dense, plain.output_dense),
    ):
        theirs.kernel.assign(mine.kernel)
    options = {"value_mask": mask, "return_attention_scores": True}
    found, wanted = (forward(each, query, value, **options) for each in (layer, plain))
    near(to_numpy(found[0]), to_numpy(wanted[0]), 1e-6)
    near(to_numpy(found[1]), to_numpy(wanted[1]), 1e-6)
