"""Beam search against exhaustive search, and its promises to users."""

import functools

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import score
from keras_attnvariants.decoding.options import LengthNormalization
from keras_attnvariants.models import SearchSettings
from tests.decoding.toys import BOS
from tests.decoding.toys import COMPILERS
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import UNK
from tests.decoding.toys import RecurrentModel
from tests.decoding.toys import TableModel
from tests.decoding.toys import brute_force
from tests.decoding.toys import greedy_search
from tests.decoding.toys import numpy
from tests.decoding.toys import random_sources
from tests.decoding.toys import search
from tests.decoding.toys import table_sources
from tests.selection import mostly_slow

CASES = 500


@pytest.fixture(scope="module")
def table_model():
    random = np.random.default_rng(3)
    return TableModel(random.normal(scale=2.0, size=(CASES, 4, 6, 6)))


@pytest.fixture(scope="module")
def model():
    # EOS is often among the best, and the search goes on for something better.
    return RecurrentModel(seed=2, eos_bias=1.0)


@pytest.fixture(scope="module")
def sources():
    return random_sources(32)


@pytest.fixture(scope="module")
def best(model, sources):
    """Search results that several tests use."""
    return search(
        model, sources, n_best=4, max_length=12, return_alignments=True, xla=True
    )


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, -0.5])
def test_wide_beam_finds_the_best_of_all(table_model, exponent):
    ids, scores = brute_force(table_model, exponent)
    found = search(
        table_model, table_sources(table_model), beam_size=27, length_penalty=exponent
    )
    np.testing.assert_array_equal(found.ids[:, 0], ids[:, 0])
    np.testing.assert_allclose(found.scores[:, 0], scores[:, 0], rtol=1e-5)


def test_wide_beam_ranks_like_exhaustive_search(table_model):
    ids, scores = brute_force(table_model, 0.6)
    found = search(table_model, table_sources(table_model), beam_size=27, n_best=27)
    np.testing.assert_allclose(found.scores, scores[:, :27], rtol=1e-5, atol=1e-5)
    # Near ties may swap places; all other ids are the same.
    gaps = np.abs(np.diff(scores[:, :28], axis=1))
    clear = np.minimum(gaps, np.pad(gaps, ((0, 0), (1, 0)))[:, :-1]) > 1e-4
    clear[:, 0] = gaps[:, 0] > 1e-4
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(found.ids[clear], ids[:, :27][clear])


@pytest.mark.parametrize("min_length", [1, 2, 3])
def test_minimum_length_is_exact(table_model, min_length):
    ids, scores = brute_force(table_model, 0.6, min_length=min_length)
    found = search(
        table_model, table_sources(table_model), beam_size=27, min_length=min_length
    )
    np.testing.assert_array_equal(found.ids[:, 0], ids[:, 0])
    np.testing.assert_allclose(found.scores[:, 0], scores[:, 0], rtol=1e-5)
    assert found.lengths.min() == min_length + 1


@pytest.mark.parametrize("max_length", [1, 2, 3])
def test_maximum_length_counts_eos(table_model, max_length):
    ids, scores = brute_force(table_model, 0.6, max_length=max_length)
    found = search(
        table_model, table_sources(table_model), beam_size=27, max_length=max_length
    )
    np.testing.assert_array_equal(found.ids[:, 0], ids[:, 0])
    np.testing.assert_allclose(found.scores[:, 0], scores[:, 0], rtol=1e-5)


def test_prefix_is_honoured_per_sentence(table_model):
    random = np.random.default_rng(5)
    prefix = random.choice([UNK, 4, 5], size=(CASES, 3))
    lengths = random.integers(0, 4, size=(CASES, 1))
    prefix = np.where(np.arange(3) < lengths, prefix, PAD).astype("int32")
    ids, scores = brute_force(table_model, 0.6, prefix=prefix)
    found = search(table_model, table_sources(table_model), beam_size=27, prefix=prefix)
    np.testing.assert_array_equal(found.ids[:, 0], ids[:, 0])
    np.testing.assert_allclose(found.scores[:, 0], scores[:, 0], rtol=1e-5)


def test_prefix_of_unequal_width_means_the_same(model, sources):
    prefix = np.array([[4, 5], [6, PAD]] * 16, "int32")
    wide = np.pad(prefix, ((0, 0), (0, 4)))
    results = [
        search(model, sources, prefix=p, n_best=2, max_length=12)
        for p in (prefix, wide)
    ]
    np.testing.assert_array_equal(results[0].ids, results[1].ids)
    is_token = prefix != PAD
    for rank in range(2):
        starts = results[0].ids[:, rank, :2]
        np.testing.assert_array_equal(starts[is_token], prefix[is_token])


def eos_model(eos):
    """A `TableModel` of EOS with the given probabilities `[C, T]`, else of token 4."""
    eos = np.asarray(eos)
    tables = np.full((*eos.shape, 5, 5), -1e9)
    tables[..., EOS] = np.log(eos)[..., None]
    tables[..., 4] = np.log(1 - eos)[..., None]
    return TableModel(tables)


def test_finds_a_short_answer_that_is_best():
    # [EOS] has probability .598; 4 4 4 … EOS starts at .402 and ends below.
    model = eos_model(eos=[[0.598, *[0.01] * 5]])
    found = numpy(
        beam_search(model, [[1]], beam_size=2, length_penalty=0.0, max_length=6)
    )
    assert found.ids[0, 0].tolist() == [EOS, PAD, PAD, PAD, PAD, PAD]
    np.testing.assert_allclose(np.exp(found.scores), 0.598, rtol=1e-5)


@pytest.mark.parametrize("exponent", [0.0, 0.6, -0.5])
def test_beam_of_one_is_greedy(model, sources, exponent):
    options = {"length_penalty": exponent, "max_length": 12}
    beam = search(model, sources, beam_size=1, **options)
    greedy = search(model, sources, greedy_search, **options)
    for one, other in zip(beam[:4], greedy[:4], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("xla", COMPILERS)
def test_log_probabilities_are_those_of_scoring(model, sources, best, xla):
    found = best
    if not xla:
        found = search(model, sources, n_best=4, max_length=12)
    score_all = backend.jit(functools.partial(score, model), xla=False)
    for rank in range(4):
        ids = found.ids[:, rank]
        targets = np.where(ids == EOS, PAD, ids)[:, :-1]
        log_probs, lengths = score_all(sources, targets)
        np.testing.assert_allclose(
            found.log_probs[:, rank], ops.convert_to_numpy(log_probs), atol=1e-4
        )
        np.testing.assert_array_equal(
            found.lengths[:, rank], ops.convert_to_numpy(lengths)
        )


def test_scores_are_normalized_log_probabilities(best):
    factors = (6 / (5 + best.lengths)) ** 0.6
    np.testing.assert_allclose(best.scores, best.log_probs * factors, rtol=1e-5)


def test_hypotheses_end_with_eos_and_padding(best):
    ends = best.ids == EOS
    assert (ends.sum(axis=-1) == 1).all()
    after = np.cumsum(ends, axis=-1) - ends > 0
    assert (best.ids[after] == PAD).all()
    assert not np.isin(best.ids[~after], [PAD, BOS]).any()
    np.testing.assert_array_equal(best.lengths, (~after).sum(axis=-1))


def test_hypotheses_are_sorted_and_distinct(best):
    assert (np.diff(best.scores, axis=1) <= 0).all()
    for ids in best.ids:
        assert len(np.unique(ids, axis=0)) == 4


def naive_search(model, sentence, beams, n_best):
    """Ids and scores of the finished hypotheses of a `TableModel`, best first."""
    tables = model.tables[sentence].astype("float64")
    log_probs = tables - np.log(np.exp(tables).sum(-1, keepdims=True))
    live, finished = [((), 0.0)], []
    for position, table in enumerate(log_probs):
        is_last = position == len(log_probs) - 1
        allowed = [EOS] if is_last else [UNK, *range(EOS, model.vocabulary_size)]
        candidates = [
            ((*body, token), total + table[(BOS, *body)[-1], token])
            for body, total in live
            for token in allowed
        ]
        candidates.sort(key=lambda candidate: -candidate[1])
        best = candidates[: 2 * beams]
        finished += [
            (ids, total * (6 / (5 + len(ids))) ** 0.6)
            for ids, total in best
            if ids[-1] == EOS
        ]
        live = [candidate for candidate in best if candidate[0][-1] != EOS][:beams]
    return sorted(finished, key=lambda found: -found[1])[:n_best]


@pytest.mark.parametrize("beams", [1, 3])
def test_more_hypotheses_are_returned_than_are_kept(table_model, beams):
    # The released code of Chen et al. keeps 3 and returns 10.
    sources = table_sources(table_model)[:50]
    found = search(table_model, sources, beam_size=beams, n_best=10)
    counts = (found.lengths > 0).sum(axis=1)
    assert found.ids.shape[:2] == (50, 10) and counts.max() > beams
    for sentence, count in enumerate(counts):
        expected = naive_search(table_model, sentence, beams, 10)
        assert count == len(expected)
        ids = [tuple(row[row != PAD]) for row in found.ids[sentence, :count]]
        assert ids == [ids for ids, _ in expected]
        scores = [score for _, score in expected]
        np.testing.assert_allclose(found.scores[sentence, :count], scores, rtol=1e-5)


def test_a_model_says_how_it_is_searched(model, sources):
    own = RecurrentModel(seed=2, eos_bias=1.0)
    own.search_settings = SearchSettings(3, length_penalty=1.0, extra_length=2)
    found = search(own, sources[:4])
    assert found.ids.shape[2] == sources.shape[1] + 2
    for options, penalty in (({}, 1.0), ({"length_penalty": 0.0}, 0.0)):
        limits = {"beam_size": 3, "length_penalty": penalty}
        one = search(own, sources[:4], max_length=9, **options)
        other = search(model, sources[:4], max_length=9, **limits)
        np.testing.assert_array_equal(one.scores, other.scores)
    greedy = search(own, sources[:4], greedy_search, max_length=9)
    other = search(model, sources[:4], greedy_search, max_length=9, length_penalty=1.0)
    np.testing.assert_array_equal(greedy.scores, other.scores)


@pytest.mark.parametrize(
    "exponent", mostly_slow([0.0, 0.6, 2.0, -0.5, -2.0], [0.6, -2.0])
)
@pytest.mark.parametrize("n_best", mostly_slow([1, 3, 7], [1, 7]))
def test_stopping_early_never_changes_the_result(exponent, n_best, monkeypatch):
    # EOS is likely everywhere, so that a search can always stop.
    tables = np.random.default_rng(9).normal(scale=1.5, size=(64, 16, 6, 6))
    tables[..., EOS] += 1.0
    model = TableModel(tables)

    def run():
        options = {"beam_size": 3, "n_best": n_best, "length_penalty": exponent}
        return search(model, table_sources(model), **options)

    early = run()
    # A live hypothesis with the best score of all is never given up.
    monkeypatch.setattr(LengthNormalization, "best_from", lambda self, length: 0.0)
    late = run()
    np.testing.assert_array_equal(early.ids, late.ids)
    for name in ("scores", "log_probs"):
        # Products of other numbers of rows may round otherwise.
        np.testing.assert_allclose(
            getattr(early, name), getattr(late, name), rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize(
    ("eos", "exponent", "length"),
    [
        # A long hypothesis overtakes by its length …
        ([0.51, *[1e-6] * 30, 1.0], 0.6, 32),
        ([0.51, *[1e-6] * 30, 1.0], 0.0, 1),
        # … or, with a negative exponent, a slightly longer one in spite of it.
        ([0.4, 1.0, *[1e-6] * 30], -0.5, 2),
        ([0.6, 1.0, *[1e-6] * 30], -0.5, 1),
    ],
)
def test_does_not_stop_before_the_best_has_ended(eos, exponent, length):
    model = eos_model(eos=[np.clip(eos, 1e-9, 1 - 1e-9)])
    found = numpy(beam_search(model, [[1]], beam_size=2, length_penalty=exponent))
    assert found.lengths.tolist() == [[length]]


@pytest.mark.skipif(backend.name() != "tensorflow", reason="counts eager steps")
def test_stops_when_nothing_better_can_follow():
    model, positions = eos_model(eos=[[0.999] * 40, [0.001] * 40]), []
    step = model.step

    def counting_step(tokens, position, *args, **kwargs):
        positions.append(int(position))
        return step(tokens, position, *args, **kwargs)

    model.step = counting_step
    beam_search(model, [[1]], beam_size=2)
    assert positions == [0]
    positions.clear()
    beam_search(model, [[1], [2]], beam_size=2)
    assert positions == list(range(40))


@pytest.mark.parametrize("needed", [1, 2])
def test_a_search_may_end_with_the_best_few(model, sources, needed):
    options = {"max_length": 12, "beam_size": 3}
    found = search(model, sources, n_best=4, needed=needed, **options)
    fewer = search(model, sources, n_best=needed, **options)
    np.testing.assert_array_equal(found.ids[:, :needed], fewer.ids)
    np.testing.assert_array_equal(found.scores[:, :needed], fewer.scores)
    every = search(model, sources, n_best=4, **options)
    # Rounding depends on the sentences that are left in the batch.
    assert (found.scores[:, needed:] <= every.scores[:, needed:] + 1e-5).all()
    assert (found.scores[:, 3] < every.scores[:, 3] - 1e-5).any()
