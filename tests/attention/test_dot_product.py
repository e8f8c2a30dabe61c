"""Learned attention: the same numbers as in Keras, and promises beyond it."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.backend import name
from tests.attention.conformance import forward
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy

HEADS = 4
BATCH, LENGTH, SOURCE_LENGTH = 2, 5, 7
WIDTH, SOURCE_WIDTH, KEY_WIDTH = 16, 12, 10


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    return (
        normal(rng, BATCH, LENGTH, WIDTH),
        normal(rng, BATCH, SOURCE_LENGTH, SOURCE_WIDTH),
        normal(rng, BATCH, SOURCE_LENGTH, KEY_WIDTH),
    )


def twins(key_dim, value_dim, use_bias, *inputs):
    """Our layer and Keras' `MultiHeadAttention` with the same weights."""
    sizes = {"num_heads": HEADS, "key_dim": key_dim, "value_dim": value_dim}
    ours = DotProductAttention(use_bias=use_bias, **sizes)
    theirs = keras.layers.MultiHeadAttention(use_bias=use_bias, **sizes)
    shapes = [array.shape for array in inputs]
    ours.build(*shapes)
    theirs.build(*shapes)
    randomize(ours)
    pairs = [
        (ours.query_dense, theirs.query_dense),
        (ours.key_dense, theirs.key_dense),
        (ours.value_dense, theirs.value_dense),
        (ours.output_dense, theirs.output_dense),
    ]
    for mine, yours in pairs:
        for source, target in zip(mine.weights, yours.weights, strict=True):
            target.assign(ops.reshape(source, target.shape))
    return ours, theirs


@pytest.mark.parametrize(
    "key_dim, value_dim, use_bias", [(4, None, False), (3, 5, True)]
)
def test_equals_keras_multi_head_attention(key_dim, value_dim, use_bias):
    query, value, key = arrays()
    ours, theirs = twins(key_dim, value_dim, use_bias, query, value, key)
    pattern = np.random.default_rng(1).random((BATCH, LENGTH, SOURCE_LENGTH)) < 0.7
    pattern[:, :, 0] = True  # Keras handles fully masked rows in its own way
    options = [
        {},
        {"use_causal_mask": True},
        {
            "attention_mask": pattern,
            "value_mask": lengths_mask([7, 3], SOURCE_LENGTH),
        },
    ]
    for masks in options:
        found, wanted = (
            forward(layer, query, value, key, return_attention_scores=True, **masks)
            for layer in (ours, theirs)
        )
        near(to_numpy(found[0]), to_numpy(wanted[0]), 1e-5)
        near(to_numpy(found[1]), to_numpy(wanted[1]), 1e-5)


def test_one_pattern_serves_the_whole_batch():
    query, value, _ = arrays()
    layer = DotProductAttention(HEADS)
    pattern = np.random.default_rng(1).random((LENGTH, SOURCE_LENGTH)) < 0.7
    layer.build(query.shape, value.shape)
    shared = forward(layer, query, value, attention_mask=pattern)
    patterns = np.stack([pattern] * BATCH)
    tiled = forward(layer, query, value, attention_mask=patterns)
    np.testing.assert_array_equal(to_numpy(shared), to_numpy(tiled))


def test_rows_of_scores_sum_to_one_or_zero():
    query, value, _ = arrays()
    mask = lengths_mask([SOURCE_LENGTH, 0], SOURCE_LENGTH)
    wanted = {"value_mask": mask, "return_attention_scores": True}
    for dtype in ("float32", "mixed_bfloat16", "mixed_float16"):
        layer = DotProductAttention(HEADS, dtype=dtype)
        layer.build(query.shape, value.shape)
        _, scores = forward(layer, query, value, **wanted)
        sums = to_numpy(scores).sum(-1)
        np.testing.assert_allclose(sums[0], 1.0, atol=1e-3)
        assert not sums[1].any()


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_huge_logits_stay_finite(dtype):
    query, _, _ = arrays()
    layer = DotProductAttention(HEADS, dtype=dtype)
    layer.build(query.shape, query.shape)
    for weight in layer.weights:
        weight.assign(ops.eye(WIDTH))
    big = 100.0 * np.sign(query)  # logits of ±2e4 in steps
    output, scores = forward(layer, big, big, return_attention_scores=True)
    assert np.isfinite(to_numpy(ops.cast(output, "float32"))).all()
    np.testing.assert_allclose(to_numpy(scores).sum(-1), 1.0, atol=1e-3)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_parameter_count_is_four_squares(heads):
    """The count is the same with one head, which is then as wide as the model."""
    layer = DotProductAttention(heads)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    assert layer.count_params() == 4 * WIDTH**2
    assert layer.head_dim == WIDTH // heads


def test_parameter_count_with_biases_and_other_widths():
    layer = DotProductAttention(HEADS, key_dim=3, value_dim=5, use_bias=True)
    layer.build((None, None, 16), (None, None, 12), (None, None, 10))
    projections = (16 + 1) * 12 + (10 + 1) * 12 + (12 + 1) * 20 + (20 + 1) * 16
    assert layer.count_params() == projections


def test_dropout_keeps_the_scores():
    """The returned weights do not show which of them were dropped."""
    query, value, _ = arrays()
    layer = DotProductAttention(HEADS, dropout=0.5, seed=1)
    _, scores = layer(query, value, return_attention_scores=True, training=True)
    np.testing.assert_allclose(to_numpy(scores).sum(-1), 1.0, atol=1e-5)


def test_cache_grows_with_max_length_only():
    layer = DotProductAttention(HEADS)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    state = layer.initial_state(2, 3, 9)
    # On TensorFlow, two numbers are kept as one word.
    entries = (9 * 3 * 4 // 2,) if name() == "tensorflow" else (9 * 3, 4)
    assert keras.tree.map_structure(lambda leaf: tuple(leaf.shape), state) == {
        "history": (2, 3, 9 * 3),
        SHARED: {"key": (2, HEADS, *entries), "value": (2, HEADS, *entries)},
    }


def test_memory_is_projected_once():
    query, value, _ = arrays()
    layer = DotProductAttention(HEADS)
    layer.build(query.shape, value.shape)
    memory = layer.prepare(ops.convert_to_tensor(value))
    assert memory["key"].shape == (BATCH, HEADS, SOURCE_LENGTH, 4)
    assert layer.initial_state(BATCH, 3, 9, memory=memory) == {}


@pytest.mark.parametrize(
    "arguments, argument",
    [
        ({"num_heads": 0}, "num_heads"),
        ({"num_heads": 2.0}, "num_heads"),
        ({"num_heads": True}, "num_heads"),
        ({"num_heads": 2, "key_dim": 0}, "key_dim"),
        ({"num_heads": 2, "key_dim": -1}, "key_dim"),
        ({"num_heads": 2, "value_dim": 0}, "value_dim"),
        ({"num_heads": 2, "dropout": 1.5}, "(rate|dropout)"),
    ],
)
def test_bad_arguments_are_refused(arguments, argument):
    with pytest.raises(ValueError, match=f"{argument}.*Received: "):
        attention.DotProductAttention(**arguments)
