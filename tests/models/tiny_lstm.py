"""Tiny recurrent models of every flavour, for the inputs of `tiny`."""

import functools

import numpy as np
import pytest

from keras_attnvariants.models import Seq2SeqLSTM
from tests.models import naive_lstm
from tests.models import tiny

FLAVOURS = {
    "attention": {},
    "attention, one direction": {
        "bidirectional": False,
        "source_vocabulary_size": tiny.VOCABULARY + 6,
    },
    "attention, padding as tokens": {"mask_padding": False},
    "no attention": {"attention": False},
    "no attention, one direction": {"attention": False, "bidirectional": False},
}
EACH_FLAVOUR = pytest.mark.parametrize("flavour", FLAVOURS)
MASKED = [name for name in FLAVOURS if "padding" not in name]
EACH_MASKED = pytest.mark.parametrize("flavour", MASKED)


def make(**options) -> Seq2SeqLSTM:
    """A new tiny model, with attention unless told otherwise."""
    sizes = {
        "vocabulary_size": tiny.VOCABULARY,
        "embedding_dim": 5,
        "hidden_dim": 8,
        "max_length": tiny.MAX_LENGTH,
    }
    return Seq2SeqLSTM(**{**sizes, **options})


@functools.cache
def built(flavour: str, dtype: str = "float32") -> Seq2SeqLSTM:
    """A model with large weights, so that attention is not uniform; do not modify."""
    model = make(**FLAVOURS[flavour], dtype=dtype)
    tiny.randomize(model)
    for weight in model.trainable_weights:
        weight.assign(4 * weight)
    return model


def arrays(model) -> dict[str, np.ndarray]:
    found = naive_lstm.variables(model)
    return {k: tiny.to_numpy(v.value).astype("float64") for k, v in found.items()}
