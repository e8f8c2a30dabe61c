"""What the tests of the recurrences share: names, layers and inputs."""

import numpy as np

from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention import recurrences
from tests.attention.conformance import BATCH
from tests.attention.conformance import HEADS
from tests.attention.conformance import LENGTH
from tests.attention.conformance import SOURCE_LENGTH
from tests.attention.conformance import WIDTH
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import normal
from tests.attention.conformance import randomize

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
