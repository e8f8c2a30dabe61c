"""Every variant, role, example and dtype: numbers, masks and gradients."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants import backend
from tests import reference
from tests.attention.conformance import LENGTH
from tests.attention.conformance import WIDTH
from tests.attention.conformance import built
from tests.attention.conformance import cases
from tests.attention.conformance import cases_and_modes
from tests.attention.conformance import inputs
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import need_float32
from tests.attention.conformance import normal
from tests.attention.conformance import to_numpy
from tests.attention.programs import CUTS
from tests.attention.programs import ORDER
from tests.attention.programs import expected
from tests.attention.programs import expected_slopes
from tests.attention.programs import named_inputs
from tests.attention.programs import output_and_gradients
from tests.attention.programs import result

# A little over two blocks of 64 positions: inputs after each of `BORDERS` change.
LONG = 130
BORDERS = (0, 62, 63, 64, 127, 128)


def test_every_variant_has_a_reference():
    assert set(attention.variants()) == set(reference.REFERENCES)


@cases_and_modes()
def test_values_match_reference(case, mode):
    output, scores = expected(case)
    near(result(case, mode).output, output, case.tolerance)
    near(result(case, mode).scores, scores, case.tolerance)


@cases_and_modes("mixed_bfloat16", "mixed_float16")
def test_weights_are_computed_in_float32(case, mode):
    case.need_scores()
    need_float32(case, result(case, mode).scores)


@cases_and_modes()
def test_gradients_match_finite_differences(case, mode):
    found = result(case, mode).gradients
    slopes = expected_slopes(case)
    assert set(found) == {name for name, _, _ in slopes}
    for name, direction, slope in slopes:
        scale = max(1.0, np.abs(found[name]).max())
        error = abs(np.sum(found[name] * direction) - slope)
        assert error <= 2 * case.tolerance * scale, name


@cases_and_modes()
def test_scores_never_change_the_output(case, mode):
    case.need_scores()
    found = result(case, mode)
    np.testing.assert_array_equal(found.output, found.plain)
    assert found.scores.shape == case.scores_shape


@cases_and_modes()
def test_padding_content_is_invisible(case, mode):
    query_mask = named_inputs(case, "usual")[2]
    clean, dirty = result(case, mode), result(case, mode, "rubbish")
    near(dirty.output[query_mask], clean.output[query_mask], 1e-6)
    near(dirty.scores, clean.scores, 1e-6)
    for name in clean.gradients:
        near(dirty.gradients[name], clean.gradients[name], 1e-6)


@cases("float32")
def test_padding_amount_is_invisible(case):
    query, value, query_mask, value_mask = inputs(case)
    layer, pad = built(case), ((0, 0), (0, 4))
    longer = case.forward(
        layer,
        np.pad(query, (*pad, (0, 0)), constant_values=3.0),
        np.pad(value, (*pad, (0, 0)), constant_values=-3.0),
        query_mask=np.pad(query_mask, pad),
        value_mask=np.pad(value_mask, pad),
    )
    shorter, _ = expected(case)
    found = to_numpy(longer)[:, :LENGTH]
    near(found[query_mask], shorter[query_mask], case.tolerance)


@cases_and_modes()
def test_masked_rows_are_zero_with_finite_gradients(case, mode):
    found = result(case, mode, "no source")
    bias = reference.layer_weights(built(case)).get("output/bias", np.zeros(WIDTH))
    exact = 0.0 if not bias.any() else case.tolerance
    near(found.output[1], np.broadcast_to(bias, (LENGTH, WIDTH)), exact)
    near(found.scores[1], np.zeros(case.scores_shape[1:]), 0.0)
    for name, gradient in found.gradients.items():
        assert np.isfinite(gradient).all(), name
    assert not found.gradients["value"][1].any()


@cases_and_modes()
def test_query_mask_empties_its_rows(case, mode):
    query_mask = named_inputs(case, "masked queries")[2]
    masked, free = (
        result(case, mode, name) for name in ("masked queries", "no padding")
    )
    near(masked.output[query_mask], free.output[query_mask], 0.0)
    assert not masked.scores.swapaxes(1, 2)[~query_mask].any()
    # All that is left of an excluded row is the output bias, the same everywhere.
    rows = masked.output[~query_mask]
    np.testing.assert_array_equal(rows, np.broadcast_to(rows[0], rows.shape))


@cases_and_modes(roles=("decoder",))
def test_causality(case, mode):
    before = result(case, mode, "no padding").output
    for name, cuts in CUTS.items():
        after = result(case, mode, name).output
        for row, cut in enumerate(cuts):
            check_causality(before[row], after[row], cut)


def check_causality(before, after, cut):
    """Asserts that outputs up to a position are the same, and that the next differs."""
    np.testing.assert_array_equal(after[: cut + 1], before[: cut + 1])
    assert np.abs(after[cut + 1] - before[cut + 1]).max() > 1e-2


def check_long_causality(case, **masks):
    before = normal(np.random.default_rng(8), len(BORDERS), LONG, WIDTH)
    after = before.copy()
    for row, cut in enumerate(BORDERS):
        after[row, cut + 1 :] += 3.0
    outputs = [
        to_numpy(case.forward(built(case), x, x, **masks)) for x in (before, after)
    ]
    for row, cut in enumerate(BORDERS):
        check_causality(outputs[0][row], outputs[1][row], cut)


@cases("float32", roles=("decoder",))
def test_causality_across_blocks(case):
    check_long_causality(case)


@cases("float32", roles=("decoder",), causal_layers=True)
def test_causal_layers_need_no_causal_mask(case):
    check_long_causality(case, use_causal_mask=False)


@cases_and_modes()
def test_batch_permutation(case, mode):
    straight, permuted = result(case, mode), result(case, mode, "permuted")
    # Half-precision matrix products may round a row differently by its place.
    tolerance = 1e-6 if case.dtype == "float32" else case.tolerance
    near(permuted.output, straight.output[ORDER], tolerance)
    near(permuted.scores, straight.scores[ORDER], tolerance)


@pytest.mark.parametrize(
    "length, source_length",
    [
        (1, 65),
        (65, 63),
        *(
            pytest.param(*lengths, marks=pytest.mark.slow)
            for lengths in [(2, 1), (63, 64), (64, 2)]
            if backend.name() != "jax"  # where each of them is compiled
        ),
    ],
)
@cases("float32")
def test_lengths(case, length, source_length):
    if case.role != "cross":
        source_length = length
    query, value, _, _ = inputs(case, 3, length, source_length)
    value_mask = lengths_mask([source_length, source_length, 1], source_length)
    layer = built(case)
    output = to_numpy(case.forward(layer, query, value, value_mask=value_mask))
    wanted, _ = case.expected(layer, query, value, value_mask=value_mask)
    near(output, wanted, case.tolerance)


@pytest.mark.parametrize("batch, length", [(0, LENGTH), (2, 0)])
@cases("float32")
def test_nothing_gives_nothing(case, batch, length):
    """A device can get an empty part of the last batch."""
    nothing = ops.zeros((batch, length, WIDTH))
    layer = built(case)

    def call(query, value):
        return case.call(layer, query, value)

    def everything(query, value):
        return output_and_gradients(layer, call, query, value, ops.sum)

    run = backend.jit(everything) if backend.name() == "jax" else everything
    output, gradients = run(nothing, nothing)
    assert output.shape == nothing.shape
    for gradient in gradients.values():
        assert not to_numpy(gradient).any()
