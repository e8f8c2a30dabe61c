"""Every variant, role, example and dtype: numbers, masks and gradients."""

import numpy as np
import pytest

from tests import reference
from tests.attention.conformance import BATCH
from tests.attention.conformance import LENGTH
from tests.attention.conformance import PROJECTION
from tests.attention.conformance import WIDTH
from tests.attention.conformance import built
from tests.attention.conformance import cases
from tests.attention.conformance import cases_and_modes
from tests.attention.conformance import inputs
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import program
from tests.attention.conformance import to_numpy
from tests.reference.differences import directional_derivative

DIRECTIONS = 3


def test_every_variant_has_a_reference():
    from keras_attnvariants import attention

    assert set(attention.variants()) == set(reference.REFERENCES)


@cases_and_modes()
def test_values_match_reference(case, mode):
    query, value, query_mask, value_mask = inputs(case)
    result = program(case, mode)(query, value, query_mask, value_mask)
    output, scores = case.expected(
        built(case), query, value, query_mask=query_mask, value_mask=value_mask
    )
    near(result.output, output, case.tolerance)
    near(result.scores, scores, case.tolerance)


@cases_and_modes()
def test_gradients_match_finite_differences(case, mode):
    query, value, query_mask, value_mask = inputs(case, seed=1)
    found = program(case, mode)(query, value, query_mask, value_mask).gradients
    arrays = {
        "query": query.astype("float64"),
        "value": value.astype("float64"),
        **reference.layer_weights(built(case)),
    }
    config = built(case).get_config()

    def loss(arrays):
        arrays = dict(arrays)
        output, _ = case.reference(
            config,
            query=arrays.pop("query"),
            value=arrays.pop("value"),
            weights=arrays,
            query_mask=query_mask,
            value_mask=value_mask,
        )
        return np.sum(output * PROJECTION)

    rng = np.random.default_rng(5)
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        for _ in range(DIRECTIONS):
            direction = rng.normal(size=array.shape)
            # Unit length: the slope is then as large as the gradient's entries.
            direction /= np.linalg.norm(direction)
            expected = directional_derivative(loss, arrays, name, direction)
            actual = np.sum(found[name] * direction)
            scale = max(1.0, np.abs(found[name]).max())
            assert abs(actual - expected) <= 2 * case.tolerance * scale, name


@cases_and_modes()
def test_scores_never_change_the_output(case, mode):
    case.need_scores()
    result = program(case, mode)(*inputs(case))
    np.testing.assert_array_equal(result.output, result.plain)
    assert result.scores.shape == case.scores_shape


@cases_and_modes()
def test_padding_content_is_invisible(case, mode):
    query, value, query_mask, value_mask = inputs(case)
    rubbish = 1e3 if case.dtype == "mixed_float16" else 1e4
    signs = np.where(np.arange(WIDTH) % 2, 1.0, -1.0).astype("float32")
    other_query = np.where(query_mask[..., None], query, rubbish * signs)
    other_value = np.where(value_mask[..., None], value, rubbish * signs)
    run = program(case, mode)
    clean = run(query, value, query_mask, value_mask)
    dirty = run(other_query, other_value, query_mask, value_mask)
    near(dirty.output[query_mask], clean.output[query_mask], 1e-6)
    near(dirty.scores, clean.scores, 1e-6)
    for name in clean.gradients:
        near(dirty.gradients[name], clean.gradients[name], 1e-6)


@cases("float32")
def test_padding_amount_is_invisible(case):
    query, value, query_mask, value_mask = inputs(case)
    layer = built(case)

    def run(extra):
        pad = ((0, 0), (0, extra))
        return case.forward(
            layer,
            np.pad(query, (*pad, (0, 0)), constant_values=3.0),
            np.pad(value, (*pad, (0, 0)), constant_values=-3.0),
            query_mask=np.pad(query_mask, pad),
            value_mask=np.pad(value_mask, pad),
        )

    short, long = to_numpy(run(0)), to_numpy(run(4))
    near(long[:, :LENGTH][query_mask], short[query_mask], 1e-6)


@cases_and_modes()
def test_masked_rows_are_zero_with_finite_gradients(case, mode):
    query, value, query_mask, value_mask = inputs(case)
    query_mask = np.ones_like(query_mask)
    value_mask[1] = False
    result = program(case, mode)(query, value, query_mask, value_mask)
    bias = reference.layer_weights(built(case)).get("output/bias", np.zeros(WIDTH))
    exact = 0.0 if not bias.any() else case.tolerance
    near(result.output[1], np.broadcast_to(bias, (LENGTH, WIDTH)), exact)
    near(result.scores[1], np.zeros(case.scores_shape[1:]), 0.0)
    for name, gradient in result.gradients.items():
        assert np.isfinite(gradient).all(), name
    assert not result.gradients["value"][1].any()


@cases_and_modes()
def test_query_mask_empties_its_rows(case, mode):
    query, value, query_mask, _ = inputs(case)
    value_mask = np.ones((BATCH, case.source_length), bool)
    masked = program(case, mode)(query, value, query_mask, value_mask)
    everything = np.ones_like(query_mask)
    free = program(case, mode)(query, value, everything, value_mask)
    near(masked.output[query_mask], free.output[query_mask], 0.0)
    assert not masked.scores.swapaxes(1, 2)[~query_mask].any()
    # What is left of an excluded row is the output bias, the same everywhere.
    rows = masked.output[~query_mask]
    np.testing.assert_array_equal(rows, np.broadcast_to(rows[0], rows.shape))


@cases_and_modes(roles=("decoder",))
def test_causality(case, mode):
    query, value, _, _ = inputs(case)
    mask = np.ones((BATCH, LENGTH), bool)
    run = program(case, mode)
    before = run(query, value, mask, mask)
    for t in range(LENGTH - 1):
        changed = query.copy()
        changed[:, t + 1 :] += 3.0
        after = run(changed, value, mask, mask)
        np.testing.assert_array_equal(
            after.output[:, : t + 1], before.output[:, : t + 1]
        )
        assert np.abs(after.output[:, t + 1] - before.output[:, t + 1]).max() > 1e-2


@cases_and_modes()
def test_batch_permutation(case, mode):
    arrays = inputs(case)
    order = np.array([2, 0, 1])
    straight = program(case, mode)(*arrays)
    permuted = program(case, mode)(*(array[order] for array in arrays))
    # Half-precision matrix products may round a row by where it stands.
    tolerance = 1e-6 if case.dtype == "float32" else case.tolerance
    near(permuted.output, straight.output[order], tolerance)
    near(permuted.scores, straight.scores[order], tolerance)


@pytest.mark.parametrize(
    "length, source_length", [(1, 65), (2, 1), (63, 64), (64, 2), (65, 63)]
)
@cases("float32")
def test_lengths(case, length, source_length):
    if case.role != "cross":
        source_length = length
    query, value, _, _ = inputs(case, 3, length, source_length)
    value_mask = lengths_mask([source_length, source_length, 1], source_length)
    layer = built(case)
    output = to_numpy(case.forward(layer, query, value, value_mask=value_mask))
    expected, _ = case.expected(layer, query, value, value_mask=value_mask)
    near(output, expected, case.tolerance)
