"""Samples: their distribution, their seeds, and the searches that they reduce to."""

import functools

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.decoding import sample
from keras_attnvariants.decoding import score
from keras_attnvariants.decoding import staged_search
from keras_attnvariants.decoding.sampling import draw
from tests.decoding.oracle import log_probabilities
from tests.decoding.oracle import repeats
from tests.decoding.oracle import tokens
from tests.decoding.toys import BOS
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
from tests.selection import mostly_slow

DRAWS = 4000


@pytest.fixture(scope="module")
def table_model():
    return TableModel(np.random.default_rng(12).normal(scale=1.2, size=(1, 3, 8, 8)))


@pytest.fixture(scope="module")
def model():
    return RecurrentModel(seed=2)


def kept_probabilities(logits, temperature=1.0, top_k=0, top_p=1.0):
    """The probabilities of the next words, PAD and BOS forbidden."""
    scaled = np.array(logits, "float64")
    scaled[[PAD, BOS]] = -np.inf
    if temperature == 0:
        return np.eye(len(scaled))[scaled.argmax()]
    weights = np.exp((scaled - scaled.max()) / temperature)
    weights[np.argsort(-weights)[top_k or len(weights) :]] = 0
    order = np.argsort(-weights)
    before = np.cumsum(weights[order]) - weights[order]
    weights[order[before >= top_p * weights.sum()]] = 0
    return weights / weights.sum()


def assert_distribution(model, ids, **options):
    """The first two tokens have the expected frequencies."""
    first = kept_probabilities(model.tables[0, 0, BOS], **options)
    second = [kept_probabilities(row, **options) for row in model.tables[0, 1]]
    pairs = {(EOS, PAD): first[EOS]}
    for one in range(model.vocabulary_size):
        if one != EOS:
            for other in range(model.vocabulary_size):
                pairs[one, other] = first[one] * second[one][other]
    expected = {pair: p * len(ids) for pair, p in pairs.items() if p > 0}
    found = {pair: 0 for pair in expected}
    for one, other in ids[:, :2].tolist():
        found[one, other] += 1  # a KeyError is one that must not occur
    statistic = sum((found[p] - expected[p]) ** 2 / expected[p] for p in expected)
    freedom = len(expected) - 1
    # Five standard deviations: less than once in a hundred thousand times.
    assert statistic < freedom + 5 * np.sqrt(2 * freedom) + 5, (statistic, freedom)


@pytest.mark.parametrize("xla", mostly_slow(COMPILERS, COMPILERS[:1]))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.5},
        {"top_k": 3},
        {"top_p": 0.7},
        {"temperature": 2.0, "top_k": 5, "top_p": 0.8},
    ],
    ids=str,
)
def test_tokens_have_the_frequencies_of_their_probabilities(table_model, options, xla):
    sources = np.ones((DRAWS, 1), "int32")
    found = search(table_model, sources, sample, xla=xla, seed=5, **options)
    assert_distribution(table_model, found.ids[:, 0], **options)


def test_options_of_each_sentence(table_model):
    # In turns, so that each is drawn beside others.
    settings = [
        {"temperature": 1.0, "top_k": 0, "top_p": 1.0},
        {"temperature": 0.6, "top_k": 2, "top_p": 1.0},
        {"temperature": 1.5, "top_k": 0, "top_p": 0.5},
        {"temperature": 0.0, "top_k": 7, "top_p": 0.9},
    ]
    values = {
        name: np.array([each[name] for each in settings] * DRAWS)
        for name in settings[0]
    }
    values["temperature"] = values["temperature"].astype("float32")
    values["top_p"] = values["top_p"].astype("float32")
    values["seed"] = np.arange(len(values["top_k"]))

    def run(ids, *tensors):
        return sample(table_model, ids, **dict(zip(values, tensors, strict=True)))

    sources = np.ones((len(values["seed"]), 1), "int32")
    inputs = map(ops.convert_to_tensor, (sources, *values.values()))
    found = numpy(backend.jit(run, xla=False)(*inputs))
    for turn, options in enumerate(settings):
        assert_distribution(table_model, found.ids[turn::4, 0], **options)


@pytest.mark.parametrize("xla", COMPILERS)
@pytest.mark.parametrize(
    "options", [{"temperature": 0}, {"temperature": 1e-4}, {"top_k": 1}], ids=str
)
def test_greedy_search_is_a_special_case(model, options, xla):
    sources = random_sources(16)
    limits = {"max_length": 12, "return_alignments": True}
    found = search(model, sources, sample, xla=xla, **options, **limits)
    greedy = search(
        model, sources, greedy_search, return_token_log_probs=True, **limits
    )
    np.testing.assert_array_equal(found.ids, greedy.ids)
    for one, other in zip(found[1:], greedy[1:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("xla", COMPILERS)
def test_a_seed_says_it_all(model, xla):
    sources = random_sources(12)
    seeds = list(range(100, 112))
    together = search(model, sources, sample, xla=xla, seed=seeds, max_length=10)
    again = search(model, sources, sample, xla=xla, seed=seeds, max_length=10)
    np.testing.assert_array_equal(together.ids, again.ids)
    alone = backend.jit(
        lambda ids, seed: sample(model, ids, seed=seed, max_length=10), xla=xla
    )
    for row in range(3):
        # A single sentence with one seed for all has the same numbers.
        source = ops.convert_to_tensor(sources[row : row + 1])
        found = numpy(alone(source, ops.convert_to_tensor(seeds[row : row + 1])))
        np.testing.assert_array_equal(found.ids[0], together.ids[row])
    one = search(model, sources[:1], sample, xla=xla, seed=100, max_length=10)
    np.testing.assert_array_equal(one.ids[0], together.ids[0])
    other = search(model, sources, sample, xla=xla, seed=7, max_length=10)
    assert (other.ids != together.ids).any(axis=-1).mean() > 0.8


def test_one_seed_draws_anew_for_each_sentence(model):
    sources = np.repeat(random_sources(1), 20, axis=0)
    options = {"temperature": 3.0, "min_length": 5, "max_length": 10}
    found = search(model, sources, sample, seed=3, **options)
    assert len(np.unique(found.ids[:, 0], axis=0)) > 15


def test_log_probabilities_are_those_of_the_model(model):
    sources = random_sources(16)
    options = {"temperature": 2.0, "top_k": 4, "top_p": 0.9, "max_length": 12}
    found = search(model, sources, sample, **options)
    ids = found.ids[:, 0]
    log_probs, _ = score(model, sources, np.where(ids == EOS, PAD, ids)[:, :-1])
    np.testing.assert_allclose(
        found.log_probs[:, 0], ops.convert_to_numpy(log_probs), atol=1e-4
    )
    np.testing.assert_allclose(
        found.token_log_probs.sum(axis=-1), found.log_probs, atol=1e-5
    )
    assert (found.token_log_probs[:, 0][ids == PAD] == 0).all()


def test_log_probabilities_of_tokens(table_model):
    found = search(table_model, np.ones((5, 1), "int32"), sample, seed=9)
    log_probs = log_probabilities(table_model, 0)
    for ids, gains in zip(found.ids[:, 0], found.token_log_probs[:, 0], strict=True):
        for position, (before, after) in enumerate(
            zip((BOS, *tokens(ids)), tokens(ids), strict=False)
        ):
            expected = log_probs[position, before, after]
            assert gains[position] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("options", [{}, {"top_k": 2}, {"top_p": 0.9}], ids=str)
def test_constraints_hold(options):
    tables = np.random.default_rng(3).normal(size=(1, 9, 6, 6))
    tables[..., UNK] += 3
    model = TableModel(tables)
    sources = np.ones((200, 1), "int32")
    limits = {"min_length": 3, "block_unknown": True, "no_repeat_ngram": 2}
    found = search(model, sources, sample, max_length=8, **options, **limits)
    assert found.lengths.min() == 4 and found.lengths.max() > 4
    for [ids] in found.ids:
        assert UNK not in ids and not repeats(tokens(ids), 2)
    prefix = np.tile(np.array([[5, 4]], "int32"), (200, 1))
    found = search(model, sources, sample, prefix=prefix, block_unknown=True, **options)
    assert (found.ids[:, 0, :2] == [5, 4]).all()
    assert len(np.unique(found.ids[:, 0, 2])) > 1


def test_samples_go_on_in_later_stages(monkeypatch):
    model, sources = RecurrentModel(seed=3, eos_bias=1.0), random_sources(40)
    options = {"seed": list(range(40)), "temperature": [1.0] * 20 + [0.7] * 20}
    found = search(model, sources, sample, **options)
    first = sources.shape[1] + staged_search.MARGIN
    assert (found.lengths > first).any() and (found.lengths <= first).any()
    monkeypatch.setattr(staged_search, "MIN_SECOND_STAGE", 1000)
    np.testing.assert_array_equal(
        found.ids, search(model, sources, sample, xla=True, **options).ids
    )


def test_empty_sentences_are_not_sampled(model):
    sources = random_sources(3)
    sources[1] = PAD
    found = search(model, sources, sample, max_length=6)
    assert found.ids[1, 0].tolist() == [EOS] + [PAD] * 5
    assert found.log_probs[1, 0] == 0.0


def test_draws_fall_on_positive_weights():
    weights = np.array([[0.0, 2.0, 0.0, 1.0, 1.0, 0.0]], "float32")
    draws = backend.jit(functools.partial(draw, ops.convert_to_tensor(weights)))
    numbers = [0.0, 0.25, 0.49, 0.5, 0.74, 0.75, 1 - 2**-24]
    found = [
        int(draws(ops.convert_to_tensor([number], dtype="float32"))[0])
        for number in numbers
    ]
    assert found == [1, 1, 1, 3, 3, 4, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -0.5}, "`temperature` .* Received: -0.5"),
        ({"temperature": "hot"}, "`temperature` .* Received: 'hot'"),
        ({"top_k": -1}, "`top_k` .* Received: -1"),
        ({"top_k": 1.5}, "`top_k` .* Received: 1.5"),
        ({"top_p": 0.0}, "`top_p` .* Received: 0.0"),
        ({"top_p": [0.5, 1.5]}, "`top_p` .* Received: 1.5"),
        ({"seed": -1}, "`seed` .* Received: -1"),
        ({"seed": 2**31}, "`seed` .* Received: 2147483648"),
        ({"seed": [1, 2, 3]}, r"`seed` .* Received: shape \(3,\)"),
    ],
)
def test_wrong_options_are_named(model, options, message):
    with pytest.raises(ValueError, match=message):
        sample(model, random_sources(2), **options)
