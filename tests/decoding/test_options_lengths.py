"""Length normalization: its factors, for one exponent and for one per sentence."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.options import LengthNormalization
from keras_attnvariants.decoding.options import length_factors
from keras_attnvariants.decoding.step_model import select_sentences
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
    normalization = LengthNormalization(
        model, given, constraints.source_ids, constraints.limits
    )
    pair = np.broadcast_to(exponents, 2)
    lengths = np.array([[3, 4, 1], [20, 0, 7]], "int32")
    found = normalization.of(ops.convert_to_tensor(lengths))
    np.testing.assert_allclose(
        ops.convert_to_numpy(found), expected(lengths, pair[:, None]), rtol=1e-6
    )
    for part, kept in (
        (normalization, [0, 1]),
        (select_sentences(normalization, [1]), [1]),
    ):
        at = ops.convert_to_numpy(part.at(ops.convert_to_tensor(9)))
        np.testing.assert_allclose(at[:, 0], expected(9, pair[kept]), rtol=1e-6)
        best = ops.convert_to_numpy(part.best_from(ops.convert_to_tensor(9)))
        np.testing.assert_allclose(
            best, [min(expected(9, e), expected(20, e)) for e in pair[kept]], rtol=1e-6
        )
