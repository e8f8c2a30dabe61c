"""Options of a search: values per sentence, bad arguments, token ids."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import staged_search
from keras_attnvariants.decoding.options import check_lengths
from keras_attnvariants.decoding.options import check_sizes
from keras_attnvariants.decoding.options import count_tokens
from keras_attnvariants.decoding.options import is_used
from keras_attnvariants.decoding.options import known_values
from keras_attnvariants.decoding.options import largest
from keras_attnvariants.decoding.options import to_token_ids
from tests.decoding.oracle import naive_beam
from tests.decoding.oracle import naive_greedy
from tests.decoding.oracle import tokens
from tests.decoding.toys import COMPILERS
from tests.decoding.toys import UNK
from tests.decoding.toys import RecurrentModel
from tests.decoding.toys import TableModel
from tests.decoding.toys import greedy_search
from tests.decoding.toys import numpy
from tests.decoding.toys import random_sources
from tests.decoding.toys import search
from tests.decoding.toys import table_sources
from tests.selection import mostly_slow

SENTENCES, STEPS = 60, 8


@pytest.fixture(scope="module")
def model():
    random = np.random.default_rng(8)
    tables = random.normal(scale=1.5, size=(SENTENCES, STEPS, 6, 6))
    tables[..., UNK] += 1.0
    return TableModel(tables)


@pytest.fixture(scope="module")
def options():
    """One value per sentence, where each option is off for some."""
    random = np.random.default_rng(9)
    min_length = random.integers(0, 4, SENTENCES)
    return {
        "min_length": min_length,
        "max_length": min_length + random.integers(1, STEPS - 3, SENTENCES),
        "length_penalty": random.uniform(-1, 2, SENTENCES).astype("float32"),
        "block_unknown": random.random(SENTENCES) < 0.5,
        "no_repeat_ngram": random.integers(0, 4, SENTENCES),
    }


def of_sentence(options, sentence):
    return {name: values[sentence].item() for name, values in options.items()}


def run(function, model, sources, options, as_tensors, xla, **more):
    """A search with known lists, or with tensors that a graph gets as inputs."""
    if not as_tensors:
        lists = {name: values.tolist() for name, values in options.items()}
        return search(model, sources, function, xla=xla, **lists, **more)

    def with_options(ids, *values):
        named = dict(zip(options, values, strict=True))
        return function(model, ids, **named, **more)

    inputs = map(ops.convert_to_tensor, (sources, *options.values()))
    return numpy(backend.jit(with_options, xla=xla)(*inputs))


@pytest.mark.parametrize("xla", mostly_slow(COMPILERS, COMPILERS[:1]))
@pytest.mark.parametrize("as_tensors", [False, True])
def test_beam_search_of_each_sentence(model, options, as_tensors, xla):
    more = {"beam_size": 3, "n_best": 2}
    found = run(
        beam_search, model, table_sources(model), options, as_tensors, xla, **more
    )
    for sentence in range(SENTENCES):
        expected = naive_beam(model, sentence, 3, 2, **of_sentence(options, sentence))
        for rank, (ids, total) in enumerate(expected):
            assert tokens(found.ids[sentence, rank]) == ids
            assert found.scores[sentence, rank] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("xla", mostly_slow(COMPILERS, COMPILERS[:1]))
@pytest.mark.parametrize("as_tensors", [False, True])
def test_greedy_search_of_each_sentence(model, options, as_tensors, xla):
    found = run(greedy_search, model, table_sources(model), options, as_tensors, xla)
    for sentence in range(SENTENCES):
        given = of_sentence(options, sentence)
        penalty = given.pop("length_penalty")
        ids, gains = naive_greedy(model, sentence, **given)
        assert tokens(found.ids[sentence, 0]) == ids
        total = sum(gains) * (6 / (5 + len(ids))) ** penalty
        assert found.scores[sentence, 0] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_options_follow_their_sentences_into_later_stages(beam_size):
    model, sources = RecurrentModel(seed=3, eos_bias=-1.0), random_sources(6)
    first = sources.shape[1] + staged_search.MARGIN
    options = {
        "min_length": np.array([0, first + 3, 0, 3, first + 1, 2]),
        "max_length": np.array([0, first + 20, first - 4, 0, 0, 5]),
        "length_penalty": np.array([0.6, 0.0, 1.0, -0.5, 2.0, 0.6], "float32"),
        "block_unknown": np.array([True, False, True, False, True, False]),
        "no_repeat_ngram": np.array([2, 3, 0, 1, 0, 4]),
    }
    together = run(
        beam_search, model, sources, options, as_tensors=True, xla=False,
        beam_size=beam_size, return_token_log_probs=True,
    )  # fmt: skip
    assert (together.lengths[:, 0] > first).any()
    assert (together.lengths[:, 0] <= first).any()
    for sentence in range(6):
        given = of_sentence(options, sentence)
        given["max_length"] = given["max_length"] or None
        alone = search(
            model, sources[sentence : sentence + 1], beam_size=beam_size, **given
        )
        assert tokens(together.ids[sentence, 0]) == tokens(alone.ids[0, 0])
        assert together.scores[sentence, 0] == pytest.approx(
            alone.scores[0, 0], abs=1e-4
        )
    np.testing.assert_allclose(
        together.token_log_probs.sum(-1), together.log_probs, atol=1e-4
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"min_length": [1, 2, 3]}, r"`min_length` must be one integer, .* \(3,\)"),
        ({"min_length": [-1, 2]}, "`min_length` .* Received: -1"),
        ({"min_length": [3, 0], "max_length": [5, 70]}, "`max_length` .* Received: 70"),
        ({"min_length": [3, 5], "max_length": [5, 5]}, "`min_length` .* Received: 5"),
        ({"max_length": [0, -1]}, "`max_length` .* Received: -1"),
        ({"max_length": [[3], [4]]}, r"`max_length` .* shape \(2, 1\)"),
        ({"length_penalty": [0.1, float("nan")]}, "`length_penalty` .* Received: nan"),
        ({"length_penalty": [True, False]}, "`length_penalty` .* dtype bool"),
        ({"block_unknown": [0, 1]}, "`block_unknown` must be one bool.* dtype int"),
        ({"no_repeat_ngram": [0.5, 2.0]}, "`no_repeat_ngram` .* dtype float"),
    ],
)
def test_wrong_values_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        beam_search(RecurrentModel(), random_sources(2), **wrong)


def test_values_of_tensors_are_not_known():
    tensor = ops.convert_to_tensor([1, 2])
    assert known_values(3) == [3]
    assert known_values(None) == [None]
    assert known_values(np.array([1, 2])) == known_values([1, 2]) == [1, 2]
    assert known_values(tensor) == []
    assert largest(tensor, unknown=7) == 7
    assert largest([1, 5, 2], unknown=7) == 5
    assert [is_used(value) for value in (0, False, 1, True, [0, 0])] == [
        *(False, False, True, True, True)
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, None, 9), "`min_length` must be an integer >= 0. Received: -1"),
        ((0, 0, 9), "`max_length` must be a positive integer. Received: 0"),
        ((0, 10, 9), r"`max_length` must be at most .*\(9\). Received: 10"),
        ((9, None, 9), "`min_length` must be below 9, .* Received: 9"),
        ((4, 4, 9), "`min_length` must be below 4, .* Received: 4"),
    ],
)
def test_lengths_that_exclude_each_other_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_lengths(*arguments)


def test_the_limits_themselves_are_fine():
    check_lengths(8, 9, 9)
    check_lengths(8, None, 9)


@pytest.mark.parametrize("ids", [[[1, 2]], np.array([[1, 2]], "int64")])
def test_integers_of_two_axes_become_int32(ids):
    found = to_token_ids("ids", ids)
    assert "int32" in str(found.dtype)
    assert ops.convert_to_numpy(found).tolist() == [[1, 2]]


@pytest.mark.parametrize("ids", [[1, 2], [[0.5]], np.zeros((1, 2, 3), "int32")])
def test_others_are_refused(ids):
    with pytest.raises(ValueError, match=r"`ids` must be .* Received: shape \("):
        to_token_ids("ids", ids)


def test_padding_does_not_count():
    ids = np.array([[[5, 6, 0]], [[0, 0, 0]]], "int32")
    found = count_tokens(ops.convert_to_tensor(ids), pad_id=0)
    assert ops.convert_to_numpy(found).tolist() == [[2], [0]]


def test_check_sizes_sorts_and_cuts_off():
    assert check_sizes("lengths", [64, 16, 16, 256], largest=100) == (16, 64, 100)
    for values in ([], 3, [0], [2.5], [True]):
        with pytest.raises(ValueError, match="`lengths` .* Received: "):
            check_sizes("lengths", values)
