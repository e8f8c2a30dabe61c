"""ALiBi and relative biases: worked examples and options."""

import numpy as np
import pytest

from keras_attnvariants.attention import AlibiAttention
from keras_attnvariants.attention import RelativeBiasAttention
from keras_attnvariants.attention.distance_biases import slopes
from tests.attention.conformance import forward
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy
from tests.reference.distance_biases import bucket

WIDTH = 8
EIGHT = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


@pytest.mark.parametrize(
    "num_heads, expected",
    [
        (1, [1 / 256]),
        (2, [1 / 16, 1 / 256]),
        (8, EIGHT),
        # Every other one of 16 heads, from the first on.
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
    """Not all positions above 256 are representable in bfloat16."""
    layer, length = AlibiAttention(1, dtype="mixed_bfloat16"), 600
    x = np.zeros((1, length, WIDTH), "float32")
    layer.build(x.shape)
    _, scores = forward(layer, x, x, return_attention_scores=True)
    row = np.log(to_numpy(scores)[0, 0, 0])
    np.testing.assert_allclose(np.diff(row), -1 / 256, atol=1e-4)


# T5's choice, 32 buckets up to distance 128: the first distance of each bucket, 16 of
# them in an encoder (both sides have such a list) and 32 in a decoder.
ENCODER_STARTS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
DECODER_STARTS = [*range(17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99]
DECODER_STARTS.append(113)


def table(starts, distance):
    """The last bucket that starts at this distance or before."""
    return max(number for number, start in enumerate(starts) if start <= distance)


def test_buckets_of_an_encoder():
    layer = RelativeBiasAttention(4)
    relative = np.arange(-200, 201)
    expected = [
        table(ENCODER_STARTS, abs(distance)) + 16 * (distance > 0)
        for distance in relative
    ]
    assert layer.buckets(relative).tolist() == expected
    config = layer.get_config()
    assert [bucket(config, distance) for distance in relative] == expected


def test_buckets_of_a_decoder():
    """Keys after the query, which are hidden anyway, share the bucket of the query."""
    layer = RelativeBiasAttention(4, bidirectional=False)
    relative = np.arange(-200, 3)
    expected = [table(DECODER_STARTS, max(-distance, 0)) for distance in relative]
    assert layer.buckets(relative).tolist() == expected
    config = layer.get_config()
    assert [bucket(config, distance) for distance in relative] == expected


def test_biases_are_looked_up_by_bucket():
    """Without queries, the logarithm of a weight is its bias, up to a constant."""
    layer, x = RelativeBiasAttention(2, num_buckets=4), np.zeros((1, 3, WIDTH))
    x = x.astype("float32")
    layer.build(x.shape)
    biases = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 7.0], [11.0, 13.0]])
    layer.bias_embedding.embeddings.assign(biases)
    _, scores = forward(layer, x, x, return_attention_scores=True)
    # `j - i` is 0, before (bucket 1) or after (bucket 3).
    buckets = np.array([[0, 3, 3], [1, 0, 3], [1, 1, 0]])
    energies = biases[buckets].transpose(2, 0, 1)
    expected = np.exp(energies) / np.exp(energies).sum(-1, keepdims=True)
    np.testing.assert_allclose(to_numpy(scores)[0], expected, atol=1e-6)


def test_beyond_the_last_distance_all_are_alike():
    layer = RelativeBiasAttention(2, num_buckets=8, max_distance=9)
    x = np.zeros((1, 30, WIDTH), "float32")
    layer.build(x.shape)
    randomize(layer)
    _, scores = forward(layer, x, x, return_attention_scores=True)
    far = to_numpy(scores)[0, :, 0, 9:]
    np.testing.assert_allclose(far, np.broadcast_to(far[:, :1], far.shape), rtol=1e-5)


def test_there_is_one_number_for_each_bucket_and_head():
    plain, biased = 4 * WIDTH**2, RelativeBiasAttention(4)
    biased.build((None, None, WIDTH))
    assert biased.count_params() == plain + 32 * 4


def test_one_direction_serves_in_decoders_only():
    assert RelativeBiasAttention(4).roles == {"encoder", "decoder"}
    assert RelativeBiasAttention(4, bidirectional=False).roles == {"decoder"}


@pytest.mark.parametrize(
    "arguments, argument",
    [
        ({"num_buckets": 3, "bidirectional": False, "max_distance": 1}, "max_distance"),
        ({"num_buckets": 2}, "num_buckets"),
        ({"num_buckets": 7}, "num_buckets"),
        ({"num_buckets": 1, "bidirectional": False}, "num_buckets"),
        ({"max_distance": 8}, "max_distance"),
        ({"max_distance": 0}, "max_distance"),
    ],
)
def test_bad_arguments_are_refused(arguments, argument):
    with pytest.raises(ValueError, match=f"`{argument}`.*Received: "):
        RelativeBiasAttention(4, **arguments)
