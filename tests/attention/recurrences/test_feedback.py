"""Feedback: the contribution of the previous position to the energies."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention import recurrences
from tests.attention.conformance import BATCH
from tests.attention.conformance import WIDTH
from tests.attention.conformance import normal
from tests.attention.conformance import to_numpy
from tests.attention.recurrences.tools import ONE_BEAM
from tests.attention.recurrences.tools import arrays
from tests.attention.recurrences.tools import built
from tests.attention.recurrences.tools import worked

STEPS = 70


def test_worked_subtraction():
    """`d_k = 4`, `lambda = 0.5`, energies `(ln 3, 0)` at both positions."""
    query = np.zeros((2, 4))
    query[:, 0] = 2 * np.log(3)
    for _, scores in worked("subtracted_weights", {}, query, np.eye(4)[:2]):
        expected = [[0.75, 0.25], [0.72584, 0.27416]]
        np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["context", "weights", "accumulated_weights"])
def test_kernels_of_queries_are_drawn_as_one_matrix(name):
    """Rows that a recurrence adds to a projection have the spread of the rest."""
    fan_in = keras.initializers.VarianceScaling(1.0, "fan_in", "uniform")
    layer = RecurrentCrossAttention(4, name, kernel_initializer=fan_in)
    layer.build((None, None, 256), (None, None, 256))
    added, query = (
        to_numpy(dense.kernel)
        for dense in (layer.recurrent["query"], layer.query_dense)
    )
    rows = added.size // 256
    assert added.std() == pytest.approx((256 + rows) ** -0.5, rel=0.1)
    assert added.std() == pytest.approx(query.std(), rel=0.15)


@pytest.mark.parametrize("rate", [-0.1, float("inf"), float("nan")])
def test_bad_rates_are_refused(rate):
    with pytest.raises(ValueError, match="`rate`.*Received: "):
        recurrences.SubtractedWeights(rate)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("name", ["accumulated_weights", "subtracted_weights"])
def test_accumulated_weights_count_the_steps(name, dtype):
    """Counts up to 70 are right: half precision would have lost count long before."""
    rng = np.random.default_rng(0)
    query = normal(rng, STEPS, BATCH, ONE_BEAM, WIDTH)
    value, mask = arrays()[1:]
    layer = built(name, dtype=dtype)
    memory = layer.prepare(ops.convert_to_tensor(value), mask)
    step = backend.jit(lambda *given: layer.step(*given, memory)[1])
    state = layer.initial_state(BATCH, ONE_BEAM, STEPS, memory)
    for t in range(STEPS):
        state = step(query[t], ops.convert_to_tensor(t), state)
    assert keras.backend.standardize_dtype(state["weights"].dtype) == "float32"
    np.testing.assert_allclose(to_numpy(state["weights"]).sum(-1), STEPS, rtol=1e-4)
