"""A model that adds EOS to its sources, and the same one that is given them so."""

import numpy as np
import pytest

from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.models import SinusoidalPositions
from keras_attnvariants.models import Transformer
from tests.models import tiny

SOURCES = np.array([[5, 6, 7], [8, 0, 0], [9, 10, 0]])
WITH_EOS = np.array([[5, 6, 7, 3], [8, 3, 0, 0], [9, 10, 3, 0]])
TARGETS = np.array([[2, 9, 4], [2, 5, 0], [2, 6, 7]])


@pytest.fixture(scope="module")
def models():
    options = tiny.SIZES | tiny.places(*[tiny.learned()] * 3)
    adds = Transformer(**options, source_eos=True)
    takes = Transformer(**options)
    takes.set_weights(adds.get_weights())
    return adds, takes


def test_logits_are_equal(models):
    adds, takes = models
    found = tiny.forward(adds, {"source_ids": SOURCES, "target_ids": TARGETS})
    expected = tiny.forward(takes, {"source_ids": WITH_EOS, "target_ids": TARGETS})
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_searches_are_equal(models):
    adds, takes = models
    options = {"max_length": 9, "return_alignments": True}
    found = beam_search(adds, SOURCES, **options)
    expected = beam_search(takes, WITH_EOS, **options)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
    weights = tiny.to_numpy(found.alignments)
    there = tiny.to_numpy(expected.alignments)[..., :-1]
    np.testing.assert_allclose(weights, there * (SOURCES > 0)[:, None, None], atol=1e-6)


def test_weights_are_those_of_the_tokens(models):
    adds, takes = models
    inputs = {"source_ids": SOURCES, "target_ids": TARGETS}
    found = adds.attention_scores(inputs)
    whole = takes.attention_scores({**inputs, "source_ids": WITH_EOS})
    real = SOURCES > 0
    columns = real[:, None, None]
    for block, sublayers in whole.items():
        for name, weights in sublayers.items():
            expected = tiny.to_numpy(weights)
            if block.startswith("encoder"):
                expected = expected[:, :, :-1, :-1] * columns * real[:, None, :, None]
            elif name == "cross":
                expected = expected[..., :-1] * columns
            np.testing.assert_allclose(found[block][name], expected, atol=1e-6)


def test_positions_reach_the_eos_of_the_longest_source():
    options = tiny.SIZES | tiny.places(*[tiny.learned()] * 3)
    with pytest.raises(ValueError, match="max_length` must be at most 72"):
        Transformer(**options, source_eos=True, positions=SinusoidalPositions(72))
    model = Transformer(**options, source_eos=True)
    longest = np.full((1, tiny.MAX_LENGTH), 5)
    assert tiny.forward(model, {"source_ids": longest, "target_ids": TARGETS[:1]}).size
    again = Transformer.from_config(model.get_config())
    assert again.source_eos


def test_weights_of_phrases_are_refused():
    phrases = PhraseAttention(num_heads=2)
    options = tiny.SIZES | tiny.places(phrases, tiny.learned(), tiny.learned())
    model = Transformer(**options, source_eos=True)
    with pytest.raises(ValueError, match="weights of tokens only.*phrases in 4 tokens"):
        model.attention_scores({"source_ids": SOURCES, "target_ids": TARGETS})
