"""Hypotheses: choosing among them, length normalization, the probability of nothing."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.hypotheses import IMPOSSIBLE
from keras_attnvariants.decoding.hypotheses import Beams
from keras_attnvariants.decoding.hypotheses import LengthNormalization
from keras_attnvariants.decoding.hypotheses import collect_alignments
from keras_attnvariants.decoding.hypotheses import is_possible
from keras_attnvariants.decoding.hypotheses import length_factors
from keras_attnvariants.decoding.hypotheses import select
from tests.decoding.toys import RecurrentModel


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, -0.5])
def test_factors_are_those_of_the_formula(exponent):
    found = length_factors(40, exponent)
    expected = [(6 / (5 + length)) ** exponent for length in range(41)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == np.float32
    assert found[1] == 1.0


@pytest.mark.parametrize("exponent", [0.6, 3.0])
def test_factors_only_fall(exponent):
    assert (np.diff(length_factors(500, exponent)) <= 0).all()


def test_sums_and_products_with_the_impossible_stay_impossible():
    values = [IMPOSSIBLE, IMPOSSIBLE / 2, 0.01 * IMPOSSIBLE, IMPOSSIBLE + 1e5]
    assert not ops.convert_to_numpy(is_possible(ops.array(values))).any()
    real = ops.array([0.0, -1e5, -1e9])
    assert ops.convert_to_numpy(is_possible(real)).all()


SOURCES = np.array([[4, 5, 6], [7, 0, 0]], "int32")


def expected(length, exponent):
    return (6 / (5 + length)) ** exponent


@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("exponents", [0.6, -0.5, [0.6, 0.6], [-1.0, 2.0]])
def test_factors(exponents, as_tensor):
    model = RecurrentModel()
    constraints = Constraints(model, SOURCES, max_length=20)
    given = exponents
    if as_tensor and isinstance(exponents, list):
        given = ops.convert_to_tensor(np.array(exponents, "float32"))
    normalization = LengthNormalization(model, given, constraints)
    pair = np.broadcast_to(exponents, 2)
    lengths = np.array([[3, 4, 1], [20, 0, 7]], "int32")
    found = normalization.of(ops.convert_to_tensor(lengths))
    np.testing.assert_allclose(
        ops.convert_to_numpy(found), expected(lengths, pair[:, None]), rtol=1e-6
    )
    for part, kept in ((normalization, [0, 1]), (normalization.take([1]), [1])):
        at = ops.convert_to_numpy(part.at(ops.convert_to_tensor(9)))
        np.testing.assert_allclose(at[:, 0], expected(9, pair[kept]), rtol=1e-6)
        best = ops.convert_to_numpy(part.best_from(ops.convert_to_tensor(9)))
        np.testing.assert_allclose(
            best, [min(expected(9, e), expected(20, e)) for e in pair[kept]], rtol=1e-6
        )


def test_selected_hypotheses_keep_their_paths():
    paths = np.arange(12, dtype="int32").reshape(2, 3, 2)
    beams = Beams(ops.zeros((2, 3)), {"ids": ops.convert_to_tensor(paths)})
    choice = np.array([[2, 0], [1, 1]], "int32")
    log_probs = ops.convert_to_tensor(np.array([[-1.0, -2.0], [-3.0, -3.0]]))
    found = select(beams, log_probs, ops.convert_to_tensor(choice))
    assert found.log_probs is log_probs
    expected = np.take_along_axis(paths, choice[:, :, None], axis=1)
    np.testing.assert_array_equal(ops.convert_to_numpy(found.paths["ids"]), expected)


def test_alignments_are_those_of_the_beams_that_predicted():
    rng = np.random.default_rng(0)
    weights = rng.random((2, 4, 3, 5)).astype("float32")  # [B, T, K, S]
    beams = rng.integers(0, 3, (2, 2, 4)).astype("int32")  # [B, N, T]
    is_token = rng.random((2, 2, 4)) < 0.7
    tensors = map(ops.convert_to_tensor, (weights, beams, is_token))
    found = ops.convert_to_numpy(collect_alignments(*tensors))
    for b, n, t in np.ndindex(2, 2, 4):
        expected = weights[b, t, beams[b, n, t]] * is_token[b, n, t]
        np.testing.assert_array_equal(found[b, n, t], expected)
