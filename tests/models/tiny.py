"""Tiny Transformers of every flavour, and inputs for them."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import HardCodedCrossAttention
from keras_attnvariants.models import ConcatenatedPositions
from keras_attnvariants.models import Transformer

WIDTH = 16
HIDDEN = 24
HEADS = 4
VOCABULARY = 23
BATCH = 3
SOURCE_LENGTH = 7
TARGET_LENGTH = 9  # longer than the reach of a ring buffer
MAX_LENGTH = 72  # steps go past 64

SIZES = {
    "vocabulary_size": VOCABULARY,
    "num_layers": 2,
    "hidden_dim": WIDTH,
    "intermediate_dim": HIDDEN,
    "max_length": MAX_LENGTH,
}


def learned(**options):
    return DotProductAttention(HEADS, **options)


def encoder(**options):
    return HardCodedAttention(HEADS, offsets=(-1, 1), **options)


def decoder(**options):
    return HardCodedAttention(HEADS, offsets=(-1, 0), **options)


def cross(**options):
    return HardCodedCrossAttention(HEADS, **options)


def places(encoder_attention=None, decoder_attention=None, cross_attention=None):
    return {
        "encoder_attention": encoder_attention,
        "decoder_attention": decoder_attention,
        "cross_attention": cross_attention,
    }


# Each differs from the others in several ways: together they cover the choices.
FLAVOURS = {
    "base, post": {
        **places(learned(), learned(), learned()),
        "normalization": "post",
    },
    "base, pre, softmax bias": {
        **places(learned(), learned(), learned()),
        "softmax_bias": True,
    },
    "hc-sa, post": {
        **places(encoder(), decoder(), learned()),
        "normalization": "post",
    },
    "hc-all, output and target tied": {
        **places(encoder(), decoder(), cross(length_ratio=1.431)),
        "tie_embeddings": "decoder",
        "softmax_bias": True,
    },
    "sh-x, one decoder layer more": {
        **places(encoder(), decoder(), [None, None, DotProductAttention(1)]),
        "num_decoder_layers": 3,
        "normalization": "post",
    },
    "no self-attention": places(None, None, learned()),
    "no cross-attention, no feed-forward": {
        **places(learned(), decoder(), None),
        "feed_forward": False,
        "normalization": "post",
    },
    "positions concatenated, nothing tied or scaled": {
        **places(*[learned(use_bias=True)] * 3),
        "positions": ConcatenatedPositions(4, max_position=5, max_length=MAX_LENGTH),
        "embedding_scale": False,
        "tie_embeddings": "none",
        "softmax_bias": True,
    },
    "nothing tied, no softmax bias, two vocabularies": {
        **places(learned(), learned(key_dim=3), learned(value_dim=5)),
        "tie_embeddings": "none",
        "source_vocabulary_size": VOCABULARY + 6,
    },
    "another in every layer": {
        **places(
            [encoder(implementation="index"), learned()],
            [None, decoder(implementation="conv")],
            [cross(floor=False), learned()],
        ),
        "feed_forward": [False, True],
        "activation": "relu",
    },
}

# The flavours above, before every registered variant is added in every fitting place.
BY_HAND = tuple(FLAVOURS)

FLAVOURS |= {
    f"{name} as {role}": {
        **places(None, None, None),
        f"{role}_attention": variant.cls(**variant.examples[variant.fitting(role)[-1]]),
        "normalization": "post",
    }
    for role in attention.registry.ROLES
    for name, variant in attention.variants(role).items()
}


# Flavours that stand for all in the fast tests of costly properties.
FAST = (
    "another in every layer",
    "PhraseAttention as decoder",
    "RecurrentCrossAttention as cross",
)


def make(**overrides) -> Transformer:
    """A new model, `base` unless told otherwise."""
    base = places(learned(), learned(), learned())
    return Transformer(**{**SIZES, **base, **overrides})


@functools.cache
def built(flavour: str, dtype: str = "float32") -> Transformer:
    """A model with random weights, biases included; tests must not change it."""
    model = make(**FLAVOURS[flavour], dtype=dtype)
    randomize(model)
    return model


def randomize(model, seed: int = 5) -> None:
    """Random weights: of norms around 1, of everything else of the usual size."""
    rng = np.random.default_rng(seed)
    for weight in model.trainable_weights:
        values = rng.normal(size=weight.shape, scale=WIDTH**-0.5)
        weight.assign(values + ("gamma" in weight.path))


def inputs(seed: int = 0) -> dict[str, np.ndarray]:
    """Sources of three lengths, the first unpadded, and targets that start with BOS."""
    rng = np.random.default_rng(seed)
    source = rng.integers(4, VOCABULARY, (BATCH, SOURCE_LENGTH)).astype("int32")
    target = rng.integers(4, VOCABULARY, (BATCH, TARGET_LENGTH)).astype("int32")
    target[:, 0] = 2
    source[1, 4:] = 0
    source[2, 1:] = 0
    target[1, 6:] = 0
    return {"source_ids": source, "target_ids": target}


# The usual one, and those at the limits.
BATCHES = {
    "three lengths": inputs(),
    "no source token": inputs() | {"source_ids": 0 * inputs()["source_ids"]},
    "one source token": inputs() | {"source_ids": inputs()["source_ids"][:, :1]},
    "one target token": inputs() | {"target_ids": inputs()["target_ids"][:, :1]},
}
EACH_BATCH = pytest.mark.parametrize("batch", BATCHES)


def forward(model, batch=None) -> np.ndarray:
    """Logits as float32 NumPy."""
    batch = keras.tree.map_structure(ops.convert_to_tensor, batch or inputs())
    return to_numpy(ops.cast(model(batch), "float32"))


def to_numpy(tensor) -> np.ndarray:
    return np.array(ops.convert_to_numpy(tensor))


def near(actual, expected, tolerance: float = 2e-5) -> None:
    """Asserts equality up to `tolerance`, relative to the largest entry above 1."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)
