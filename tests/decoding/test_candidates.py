"""The few best tokens of a vocabulary, against a sort of all of them."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.decoding.candidates import BLOCK
from keras_attnvariants.decoding.candidates import find_candidates
from keras_attnvariants.decoding.candidates import top_tokens
from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.staged_search import IMPOSSIBLE
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import RecurrentModel

K = 3
SIZES = [K, K + 1, 4 * K * BLOCK - 1, 4 * K * BLOCK, 17 * K * BLOCK + 5]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("levels", [3, 10_000])
def test_top_tokens_are_those_of_a_stable_sort(size, levels):
    """With few levels there are many ties, which smaller ids win."""
    rng = np.random.default_rng(size)
    scores = rng.integers(0, levels, (4, size)).astype("float32")
    values, ids = map(
        ops.convert_to_numpy, top_tokens(ops.convert_to_tensor(scores), K)
    )
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, expected, 1))


def found(logits, position, count, **options):
    """Allowed tokens and their log probabilities, of the first hypothesis of each."""
    model = RecurrentModel(max_length=20)
    sources = np.array([[4, 5, 6], [7, 0, 0]], "int32")
    constraints = Constraints(model, sources, **options)
    position = ops.convert_to_tensor(position, "int32")
    results = find_candidates(
        ops.convert_to_tensor(logits), constraints, position, count
    )
    values, tokens, total = map(ops.convert_to_numpy, results)
    return [
        {
            int(token): float(value - norm[0])
            for token, value in zip(ids, row, strict=True)
            if value > IMPOSSIBLE / 2
        }
        for ids, row, norm in zip(tokens[:, 0], values[:, 0], total[:, 0], strict=True)
    ]


@pytest.fixture
def logits():
    return np.random.default_rng(1).normal(0, 3, (2, 4, 9)).astype("float32")


@pytest.fixture
def log_probs(logits):
    wide = logits[:, 0].astype("float64")
    return wide - np.log(np.exp(wide).sum(-1, keepdims=True))


def test_all_that_is_allowed_is_found_before_anything_is_left_out(logits, log_probs):
    logits[:, :, [PAD, 2]] = 50.0  # the best of all are forbidden
    log_probs = (
        logits[:, 0] - np.log(np.exp(logits[:, 0].astype("float64")).sum(-1))[:, None]
    )
    allowed = [1, EOS, 4, 5, 6, 7, 8]
    for row, best in zip(log_probs, found(logits, 0, 2), strict=True):
        expected = sorted(allowed, key=lambda token: -row[token])[:2]
        assert list(best)[:2] == expected
        for token in expected:
            assert best[token] == pytest.approx(row[token], abs=1e-4)


def test_a_forced_token_is_the_only_one_and_keeps_its_probability(logits, log_probs):
    worst = int(logits[0, 0].argmin())
    prefix = np.array([[max(worst, 4)], [PAD]], "int32")
    forced, free = found(logits, 0, 2, prefix=prefix)
    assert list(forced) == [prefix[0, 0]]
    assert forced[prefix[0, 0]] == pytest.approx(log_probs[0, prefix[0, 0]], abs=1e-4)
    assert len(free) >= 2


def test_an_allowed_token_without_probability_beats_a_forbidden_one(logits):
    logits[:] = -np.inf
    logits[:, :, PAD] = 0.0
    model = RecurrentModel(max_length=20)
    constraints = Constraints(model, np.array([[4], [5]], "int32"))
    position = ops.convert_to_tensor(0, "int32")
    values, tokens, _ = find_candidates(
        ops.convert_to_tensor(logits), constraints, position, 1
    )
    best = ops.convert_to_numpy(tokens)[
        0, 0, int(np.argmax(ops.convert_to_numpy(values)[0, 0]))
    ]
    assert best not in (PAD, 2)
