"""Linear biases: the slopes of the paper, and what they do to the weights."""

import numpy as np
import pytest

from keras_attnvariants.attention import AlibiAttention
from keras_attnvariants.attention.alibi import slopes
from tests.attention.conformance import forward
from tests.attention.conformance import to_numpy

WIDTH = 8
EIGHT = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


@pytest.mark.parametrize(
    "num_heads, expected",
    [
        (1, [1 / 256]),
        (2, [1 / 16, 1 / 256]),
        (8, EIGHT),
        # Of 16 heads every other one, from the first on.
        (12, [*EIGHT, 0.70711, 0.35355, 0.17678, 0.08839]),
        (3, [1 / 16, 1 / 256, 1 / 4]),
    ],
)
def test_slopes_of_the_paper(num_heads, expected):
    np.testing.assert_allclose(slopes(num_heads), expected, atol=5e-6)
    assert AlibiAttention(num_heads).slopes == slopes(num_heads)


@pytest.mark.parametrize("causal", [False, True])
def test_weights_of_equal_products_fade_with_distance(causal):
    """`softmax(-m |i - j|)` where all queries and keys are 0."""
    layer, x = AlibiAttention(8), np.zeros((1, 5, WIDTH), "float32")
    layer.build(x.shape)
    _, scores = forward(
        layer, x, x, use_causal_mask=causal, return_attention_scores=True
    )
    distance = np.abs(np.arange(5) - np.arange(5)[:, None])
    for head, slope in enumerate(EIGHT):
        faded = np.exp(-slope * distance)
        faded = np.tril(faded) if causal else faded
        expected = faded / faded.sum(-1, keepdims=True)
        np.testing.assert_allclose(to_numpy(scores)[0, head], expected, atol=1e-6)


def test_long_distances_are_exact_in_half_precision():
    """Positions above 256 are no bfloat16 numbers."""
    layer, length = AlibiAttention(1, dtype="mixed_bfloat16"), 600
    x = np.zeros((1, length, WIDTH), "float32")
    layer.build(x.shape)
    _, scores = forward(layer, x, x, return_attention_scores=True)
    row = np.log(to_numpy(scores)[0, 0, 0])
    np.testing.assert_allclose(np.diff(row), -1 / 256, atol=1e-4)
