"""Scores of phrase attention by quadrant and token, and shares of them."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants.attention import Heterogeneous
from keras_attnvariants.attention import Homogeneous
from keras_attnvariants.attention import Interleaved
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.attention import mass_shares
from keras_attnvariants.attention import strong_shares
from keras_attnvariants.attention.phrases.scores import winners
from keras_attnvariants.decoding import greedy_search
from keras_attnvariants.models import Transformer
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import to_numpy


def test_quadrants_are_blocks_of_the_key_axis():
    layer = PhraseAttention(1, Interleaved())
    scores = np.arange(2 * 12, dtype="float32").reshape(1, 1, 2, 12)
    split = to_numpy(layer.split_scores(ops.convert_to_tensor(scores)))
    assert split.shape == (1, 1, 2, 2, 2, 3)
    np.testing.assert_array_equal(split[0, 0, 1], 12 + np.arange(12).reshape(2, 2, 3))
    assert PhraseAttention(4, Heterogeneous((1, 2, 3))).score_blocks == 3
    assert PhraseAttention(4, Homogeneous((1, 2, 1))).score_blocks == 1


def tokens_of(layer, scores):
    scores = np.array(scores, "float32")[None, :, None]  # [1, H, 1, M * N * S]
    return to_numpy(layer.token_scores(ops.convert_to_tensor(scores)))[0, :, 0]


def test_the_weight_of_an_ngram_is_shared_by_its_tokens():
    layer = PhraseAttention(1, Heterogeneous((1, 2, 3)))
    unigrams, bigrams, trigrams = [0.1, 0, 0.1, 0], [0, 0.2, 0, 0], [0, 0, 0.6, 0]
    found = tokens_of(layer, [unigrams + bigrams + trigrams])
    near(found, [[0.1 + 0.1 + 0.2, 0.1 + 0.2, 0.1 + 0.2, 0.0]], 1e-6)


def test_an_ngram_at_the_border_has_fewer_tokens():
    layer = PhraseAttention(2, Homogeneous((1, 0, 1)))
    found = tokens_of(layer, [[0.5, 0.5, 0, 0], [0.4, 0, 0, 0.6]])
    near(found, [[0.5, 0.5, 0, 0], [0.4, 0.2, 0.2, 0.2]], 1e-6)


def test_the_streams_that_have_a_query_count_the_same():
    layer = PhraseAttention(3, Interleaved())
    token = [0.5, 0, 0, 0.5]  # a unigram, and the bigram of both tokens
    phrase, nothing = [0, 1.0, 0, 0], [0.0] * 4
    found = tokens_of(layer, [token + phrase, token + nothing, nothing + nothing])
    near(found, [[0.375, 0.625], [0.75, 0.25], [0, 0]], 1e-6)


@pytest.mark.parametrize(
    "structure", [Homogeneous((2, 2)), Heterogeneous((1, 2)), Interleaved()]
)
def test_alignments_are_distributions_over_source_tokens(structure):
    layer = PhraseAttention(4, structure)
    model = Transformer(30, 1, 16, 16, None, None, layer, max_length=20)
    source = np.array([[5, 6, 7, 8, 9], [5, 6, 0, 0, 0]], "int32")
    found = greedy_search(model, source, max_length=6, return_alignments=True)
    alignments = to_numpy(found.alignments)
    lengths = to_numpy(found.lengths)
    for row, length, words in zip(alignments, lengths, (5, 2), strict=True):
        steps = row[0, : length[0]]
        np.testing.assert_allclose(steps.sum(-1), 1.0, atol=1e-5)
        assert not steps[:, words:].any()


def test_alignment_of_plain_heads_is_their_mean():
    scores = normal(np.random.default_rng(0), 2, 3, 4, 5)
    layer = attention.DotProductAttention(4)
    found = to_numpy(layer.alignment(ops.convert_to_tensor(scores)))
    near(found, scores.mean(2), 1e-6)


def quadrants(*rows):
    """Scores `[1, 1, T, 2, 2, S]` of rows `[[tt, tp], [pt, pp]]`, each `[S]`."""
    return np.array(rows, "float32")[None, None]


FIRST = quadrants([[[0.9, 0.0], [0.0, 0.1]], [[0, 0], [0, 0]]])
SECOND = quadrants(
    [[[0.4, 0.0], [0.0, 0.6]], [[0.7, 0.2], [0.1, 0.0]]],
    [[[0.5, 0.0], [0.5, 0.0]], [[0.0, 0.0], [0.3, 0.7]]],
)


def test_mass_is_shared_within_each_stream():
    found = mass_shares([FIRST, SECOND])
    near(found, [[1.8 / 3, 1.2 / 3], [0.9 / 2, 1.1 / 2]], 1e-6)
    np.testing.assert_allclose(found.sum(1), 1.0)


def test_strong_weights_are_counted_over_all_quadrants():
    found = strong_shares([FIRST, SECOND])
    near(found, [[2 / 6, 2 / 6], [1 / 6, 1 / 6]], 1e-6)
    near(strong_shares([FIRST, SECOND], 0.65), [[1 / 3, 0], [1 / 3, 1 / 3]], 1e-6)
    assert not strong_shares([FIRST], 0.95).any()


def test_shares_of_a_layer():
    """Both measures add up over the weights that `call` returns, with padding."""
    layer = PhraseAttention(4, Interleaved(look_ahead=True))
    x = normal(np.random.default_rng(1), 2, 6, 16)
    mask = np.arange(6) < np.array([[6], [3]])
    _, scores = layer(
        x, x, query_mask=mask, value_mask=mask, return_attention_scores=True
    )
    split = layer.split_scores(scores)
    np.testing.assert_allclose(mass_shares([split]).sum(1), 1.0)
    np.testing.assert_allclose(strong_shares([split], 0.05).sum(), 1.0)


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1])
def test_bad_thresholds_are_refused(threshold):
    with pytest.raises(ValueError, match="threshold.*Received: "):
        strong_shares([FIRST], threshold)


def test_the_largest_weight_of_a_position_wins():
    counts = winners(FIRST) + winners(SECOND)
    near(counts / counts.sum(), [[1 / 3, 0], [1 / 3, 1 / 3]], 1e-6)
    assert not winners(np.zeros((1, 1, 1, 2, 2, 3))).any()
