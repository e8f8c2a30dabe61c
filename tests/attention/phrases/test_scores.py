"""Scores of phrase attention by quadrant and token."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants.attention import Heterogeneous
from keras_attnvariants.attention import Homogeneous
from keras_attnvariants.attention import Interleaved
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.models import Transformer
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import to_numpy
from tests.decoding.toys import greedy_search


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
