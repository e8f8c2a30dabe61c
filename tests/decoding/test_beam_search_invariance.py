"""Translations do not depend on batch, padding, compilation, ties or dtype."""

import functools

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.decoding import beam_search
from tests.decoding.toys import COMPILERS
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import UNK
from tests.decoding.toys import RecurrentModel
from tests.decoding.toys import TableModel
from tests.decoding.toys import greedy_search
from tests.decoding.toys import numpy
from tests.decoding.toys import random_sources
from tests.decoding.toys import search

pytestmark = pytest.mark.slow

SEARCHES = [beam_search, greedy_search]


@pytest.fixture(scope="module")
def model():
    return RecurrentModel()


def assert_same(one, other, tolerance=1e-4):
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.lengths, other.lengths)
    np.testing.assert_allclose(one.scores, other.scores, atol=tolerance)
    np.testing.assert_allclose(one.log_probs, other.log_probs, atol=tolerance)
    if one.alignments is not None:
        np.testing.assert_allclose(one.alignments, other.alignments, atol=tolerance)


@pytest.mark.parametrize("function", SEARCHES)
def test_same_in_every_batch(model, function):
    sources = random_sources(64)
    translate = backend.jit(
        lambda ids: function(model, ids, min_length=4, max_length=12)[:2]
    )
    results = []
    for size in (1, 7, 32):
        padded = np.pad(sources, ((0, -len(sources) % size), (0, 0)))
        parts = [
            [ops.convert_to_numpy(value) for value in translate(part)]
            for part in np.split(padded, len(padded) // size)
        ]
        ids, scores = (
            np.concatenate(values)[:64] for values in zip(*parts, strict=True)
        )
        results.append((ids, scores))
    assert len(np.unique(results[0][0], axis=0)) > 32
    for ids, scores in results[1:]:
        np.testing.assert_array_equal(ids, results[0][0])
        np.testing.assert_allclose(scores, results[0][1], atol=1e-4)


@pytest.mark.parametrize("function", SEARCHES)
def test_padding_changes_nothing(model, function):
    # Without EOS every hypothesis runs into its limit, which must not move either.
    endless = RecurrentModel(max_length=70)
    endless.output[:, EOS] = 0.0
    endless.embeddings *= 4
    sources = random_sources(8)
    for toy, options in ((model, {}), (endless, {"min_length": 51})):
        narrow = search(toy, sources, function, **options)
        wide = search(toy, np.pad(sources, ((0, 0), (0, 9))), function, **options)
        steps = narrow.ids.shape[-1]
        assert (wide.ids[:, :, steps:] == PAD).all()
        assert_same(narrow, wide._replace(ids=wide.ids[:, :, :steps]))
    assert len(np.unique(narrow.lengths)) > 3


@pytest.mark.parametrize("function", SEARCHES)
def test_eager_equals_graph_equals_xla(model, function):
    sources = random_sources(6)
    options = {"max_length": 8, "return_alignments": True}
    eager = numpy(function(model, sources, **options))
    for xla in COMPILERS:
        assert_same(eager, search(model, sources, function, xla=xla, **options))


def test_alignments_follow_their_hypothesis(model):
    sources = random_sources(16)
    found = search(model, sources, n_best=3, max_length=8, return_alignments=True)
    forced_search = backend.jit(
        lambda ids, prefix: greedy_search(
            model, ids, prefix=prefix, max_length=8, return_alignments=True
        ),
        xla=False,
    )
    for rank in range(3):
        # Forcing the tokens leaves one hypothesis, which has no reordering.
        forced = numpy(forced_search(sources, found.ids[:, rank, :-1]))
        is_token = found.ids[:, rank] != PAD
        np.testing.assert_allclose(
            found.alignments[:, rank][is_token],
            forced.alignments[:, 0][is_token],
            atol=1e-5,
        )
        sums = found.alignments[:, rank].sum(axis=-1)
        np.testing.assert_allclose(sums, is_token, atol=1e-5)


@pytest.mark.parametrize("function", SEARCHES)
def test_alignments_do_not_change_the_search(model, function):
    sources = random_sources(8)
    without = search(model, sources, function, max_length=8)
    with_them = search(model, sources, function, max_length=8, return_alignments=True)
    assert without.alignments is None
    assert_same(without, with_them._replace(alignments=None), tolerance=0)


@pytest.mark.parametrize("xla", COMPILERS)
def test_ties_are_decided_for_the_smaller_id(xla):
    model = TableModel(np.zeros((1, 5, 7, 7)))
    options = {"beam_size": 3, "n_best": 3, "length_penalty": 0.0, "min_length": 2}
    compiled = backend.jit(functools.partial(beam_search, model, **options), xla=xla)
    # Six candidates per position, all from the first parent, EOS among them.
    expected = [
        [UNK, UNK, EOS, PAD, PAD],
        [UNK, UNK, UNK, EOS, PAD],
        [UNK, UNK, UNK, UNK, EOS],
    ]
    for _ in range(20):
        found = numpy(compiled(np.array([[1]])))
        np.testing.assert_array_equal(found.ids[0], expected)


@pytest.mark.parametrize("function", SEARCHES)
def test_empty_sentence_is_translated_by_nothing(model, function):
    sources = random_sources(3)
    sources[1] = PAD
    found = search(model, sources, function, max_length=6, return_alignments=True)
    assert found.ids[1, 0].tolist() == [EOS] + [PAD] * 5
    assert found.log_probs[1, 0] == found.scores[1, 0] == 0.0
    assert found.lengths[1, 0] == 1
    assert (found.alignments[1] == 0).all()
    assert (found.lengths[[0, 2], 0] >= 1).all()


def test_empty_sentence_has_no_other_translation(model):
    sources = random_sources(2)
    sources[0] = PAD
    found = search(model, sources, n_best=3, max_length=6)
    assert found.lengths[0].tolist() == [1, 0, 0]
    assert (found.lengths[1] > 0).all()


def test_missing_hypotheses_are_marked():
    # With two positions and UNK blocked: [4 EOS] and [EOS] are all there is.
    model = TableModel(np.random.default_rng(0).normal(size=(1, 4, 5, 5)))
    found = search(
        model, [[1]], beam_size=9, n_best=4, max_length=2, block_unknown=True
    )
    assert found.lengths[0].tolist() in ([1, 2, 0, 0], [2, 1, 0, 0])
    assert (found.ids[0, 2:] == PAD).all()
    assert (found.scores[0, 2:] == np.float32(IMPOSSIBLE)).all()
    assert (found.log_probs[0, 2:] == np.float32(IMPOSSIBLE)).all()


@pytest.mark.parametrize("function", SEARCHES)
def test_unknown_can_be_blocked(model, function):
    likes_unknown = RecurrentModel(seed=4)
    likes_unknown.output[:, UNK] *= 3
    sources = random_sources(16)
    assert (search(likes_unknown, sources, function, max_length=8).ids == UNK).any()
    found = search(likes_unknown, sources, function, max_length=8, block_unknown=True)
    assert (found.ids != UNK).all()


@pytest.mark.parametrize("function", SEARCHES)
def test_half_precision_logits_are_summed_in_float32(model, function):
    sources = random_sources(16)
    half = RecurrentModel(dtype="bfloat16")
    found = search(half, sources, function, max_length=12)
    assert found.scores.dtype == found.log_probs.dtype == np.float32
    # bfloat16 keeps 8 bits; a sum in it would be off by far more than the logits.
    exact = search(
        model,
        sources,
        greedy_search,
        prefix=found.ids[:, 0, :-1],
        max_length=12,
    )
    np.testing.assert_array_equal(exact.ids, found.ids)
    np.testing.assert_allclose(found.log_probs, exact.log_probs, atol=0.1)
