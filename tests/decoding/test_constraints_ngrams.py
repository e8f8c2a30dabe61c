"""Searches without repeated n-grams: against naive ones, and at dead ends."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.decoding import score
from keras_attnvariants.decoding.constraints import LONGEST
from keras_attnvariants.decoding.constraints import repeating_tokens
from keras_attnvariants.decoding.constraints import which_words
from tests.decoding.oracle import naive_beam
from tests.decoding.oracle import naive_greedy
from tests.decoding.oracle import repeats
from tests.decoding.oracle import tokens
from tests.decoding.toys import COMPILERS
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import UNK
from tests.decoding.toys import RecurrentModel
from tests.decoding.toys import TableModel
from tests.decoding.toys import greedy_search
from tests.decoding.toys import random_sources
from tests.decoding.toys import search
from tests.decoding.toys import table_sources
from tests.selection import mostly_slow


@pytest.fixture(scope="module")
def model():
    # The same tokens are likely at every position, and EOS is not.
    random = np.random.default_rng(6)
    tables = random.normal(scale=2.0, size=(60, 1, 6, 6))
    tables = tables + random.normal(scale=0.5, size=(60, 9, 6, 6))
    tables[..., EOS] -= 3.0
    return TableModel(tables)


def naive_repeating(ids, size):
    """The tokens that would repeat an n-gram of one hypothesis."""
    return {token for token in set(ids) if repeats((*ids, token), size)}


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("longest", ["size", LONGEST])
def test_repeating_tokens_are_those_of_a_plain_count(size, longest):
    random = np.random.default_rng(size)
    ids = random.integers(4, 7, size=(4, 3, 12)).astype("int32")
    given = size if longest == "size" else np.full(4, size, "int32")
    longest = size if longest == "size" else longest
    for position in (0, 1, 2, 5, 11):
        found = repeating_tokens(
            ops.convert_to_tensor(ids),
            ops.convert_to_tensor(position),
            given,
            longest,
            PAD,
        )
        found = ops.convert_to_numpy(found)
        for index in np.ndindex(4, 3):
            expected = naive_repeating(tuple(ids[index][:position].tolist()), size)
            if not repeats(ids[index][:position].tolist(), size):
                assert set(found[index].tolist()) - {PAD} == expected


def test_which_words():
    found = which_words(ops.convert_to_tensor([[2, 0, 2], [1, 0, 0]]), 4)
    expected = [[True, False, True, False], [True, True, False, False]]
    assert ops.convert_to_numpy(found).tolist() == expected


@pytest.mark.parametrize("xla", COMPILERS)
@pytest.mark.parametrize("size", mostly_slow([1, 2, 3], [2]))
def test_beam_search_repeats_no_ngram(model, size, xla):
    options = {"length_penalty": 1.0, "no_repeat_ngram": size}
    sources = table_sources(model)
    found = search(model, sources, beam_size=3, n_best=2, xla=xla, **options)
    plain = search(model, sources, beam_size=3, length_penalty=1.0)
    assert any(repeats(tokens(ids), size) for ids in plain.ids[:, 0])
    for sentence in range(len(sources)):
        expected = naive_beam(model, sentence, 3, 2, **options)
        for rank, (ids, total) in enumerate(expected):
            assert tokens(found.ids[sentence, rank]) == ids
            assert not repeats(ids, size)
            assert found.scores[sentence, rank] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("xla", COMPILERS)
@pytest.mark.parametrize("size", mostly_slow([1, 2, 3], [2]))
def test_greedy_search_repeats_no_ngram(model, size, xla):
    sources = table_sources(model)
    found = search(
        model,
        sources,
        greedy_search,
        xla=xla,
        no_repeat_ngram=size,
        return_token_log_probs=True,
    )
    for sentence in range(len(sources)):
        ids, gains = naive_greedy(model, sentence, no_repeat_ngram=size)
        assert tokens(found.ids[sentence, 0]) == ids and not repeats(ids, size)
        np.testing.assert_allclose(
            found.token_log_probs[sentence, 0, : len(ids)], gains, atol=1e-4
        )


@pytest.mark.parametrize("beam_size", [1, 3])
def test_who_is_stuck_ends_before_the_minimum_length(model, beam_size):
    # There are only three words to use without repetition: UNK, 4 and 5.
    sources = table_sources(model)[:20]
    options = {"no_repeat_ngram": 1, "min_length": 6}
    found = search(model, sources, beam_size=beam_size, **options)
    assert (found.lengths == 4).all()
    for sentence, [ids] in enumerate(found.ids):
        assert sorted(tokens(ids)) == [UNK, EOS, 4, 5]
        if beam_size > 1:
            [(expected, total)] = naive_beam(model, sentence, beam_size, **options)
            assert tokens(ids) == expected
            assert found.scores[sentence, 0] == pytest.approx(total, abs=1e-4)


def test_minimum_length_holds_where_one_of_the_beams_can_go_on(model):
    # All bigrams of three words, and one word more: 10 tokens without a repetition.
    sources = table_sources(model)
    options = {"no_repeat_ngram": 2, "min_length": 7}
    found = search(model, sources, beam_size=4, **options)
    lengths = [
        len(naive_beam(model, sentence, 4, **options)[0][0])
        for sentence in range(len(sources))
    ]
    assert found.lengths[:, 0].tolist() == lengths
    assert 8 in lengths


def test_a_prefix_may_repeat_itself(model):
    sources = table_sources(model)[:8]
    prefix = np.tile(np.array([[4, 4, 4]], "int32"), (8, 1))
    found = search(model, sources, prefix=prefix, no_repeat_ngram=2)
    for [ids] in found.ids:
        assert tokens(ids)[:3] == (4, 4, 4)
        assert not repeats(tokens(ids)[3:], 2)
        assert (4, 4) not in zip(tokens(ids)[2:], tokens(ids)[3:], strict=False)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_log_probabilities_are_those_of_the_model(beam_size):
    model, sources = RecurrentModel(seed=2), random_sources(8)
    found = search(
        model, sources, beam_size=beam_size, no_repeat_ngram=2, max_length=12
    )
    ids = found.ids[:, 0]
    log_probs, _ = score(model, sources, np.where(ids == EOS, PAD, ids)[:, :-1])
    np.testing.assert_allclose(
        found.log_probs[:, 0], ops.convert_to_numpy(log_probs), atol=1e-4
    )


def test_a_wrong_size_is_named(model):
    for size in (-1, 1.5, True, [2] * 59 + [-1]):
        with pytest.raises(ValueError, match="`no_repeat_ngram` .* Received: "):
            search(model, table_sources(model), no_repeat_ngram=size)
