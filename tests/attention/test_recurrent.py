"""Recurrent cross-attention: the numbers and sizes of the paper, and the layer."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention import recurrences
from keras_attnvariants.attention.recurrences.base import LastRows
from tests import reference
from tests.attention.conformance import BATCH
from tests.attention.conformance import HEADS
from tests.attention.conformance import LENGTH
from tests.attention.conformance import SOURCE_LENGTH
from tests.attention.conformance import WIDTH
from tests.attention.conformance import forward
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy
from tests.attention.recurrences.tools import EXPANDED
from tests.attention.recurrences.tools import NAMES
from tests.attention.recurrences.tools import arrays
from tests.attention.recurrences.tools import built


def worked(recurrence, kernels, query, source):
    """Output and scores of one head with given kernels, and those of its reference."""
    layer = RecurrentCrossAttention(1, recurrence)
    query, source = (np.array(x, "float32")[None] for x in (query, source))
    layer.build(query.shape, source.shape)
    for weight in layer.weights:
        name = weight.path.split("/")[-2]
        kernel = np.array(kernels.get(name, np.eye(query.shape[-1])))
        weight.assign(kernel.reshape(weight.shape))
    weights = reference.layer_weights(layer)
    naive = reference.REFERENCES["RecurrentCrossAttention"]
    expected = naive(layer.get_config(), weights, query, source)
    found = forward(layer, query, source, return_attention_scores=True)
    return [
        (to_numpy(found[0])[0], to_numpy(found[1])[0, 0]),
        (expected[0][0], expected[1][0, 0]),
    ]


def test_worked_energies():
    """Three source positions, `k = 1`, `lambda = 0.5`."""
    energies = np.array([[2, 0, 0], [0, 0, 4], [0, 0, 0]])
    smoothed = [[1, 0, 0], [1 / 6, 1 / 6, 2], [0.05556, 0.38889, 0.36111]]
    expected = np.exp(smoothed) / np.exp(smoothed).sum(-1, keepdims=True)
    rule = recurrences.AccumulatedEnergies(radius=1)
    for _, scores in worked(rule, {}, energies * 3**0.5, np.eye(3)):
        np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_worked_subtraction():
    """`d_k = 4`, `lambda = 0.5`, energies `(ln 3, 0)` at both positions."""
    query = np.zeros((2, 4))
    query[:, 0] = 2 * np.log(3)
    for _, scores in worked("subtracted_weights", {}, query, np.eye(4)[:2]):
        expected = [[0.75, 0.25], [0.72584, 0.27416]]
        np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_worked_expansion():
    """Everything is a number: query 1, source key 0, source value 2."""
    kernels = {"key": 0.0}
    for output, scores in worked(
        "expanded_head_key", kernels, np.ones((3, 1)), [[2.0]]
    ):
        np.testing.assert_allclose(output[:, 0], [1, 1.26894, 1.42936], atol=1e-5)
        np.testing.assert_allclose(1 - scores[:, 0], [0.5, 0.73106, 0.78056], atol=1e-5)


@pytest.mark.parametrize(
    "name, added",
    [*zip(NAMES, [32768, 512, 512, 0, 524288, 65536, 32768, 0, 0], strict=True)],
)
def test_parameters_beyond_the_baseline(name, added):
    """The paper's transformer: width 512, 8 heads."""
    layer = RecurrentCrossAttention(8, name)
    layer.build((None, None, 512), (None, None, 512))
    assert layer.count_params() == 4 * 512**2 + added


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("name", NAMES)
def test_state_is_small(name, dtype):
    layer = built(name, dtype=dtype)
    memory = layer.prepare(arrays()[1])
    state = layer.initial_state(BATCH, 2, 99, memory)
    (leaf,) = keras.tree.flatten(state)
    exact = "float32", (BATCH, 2, HEADS, SOURCE_LENGTH)
    context = layer.compute_dtype, (BATCH, 2, HEADS, WIDTH // HEADS)
    output = layer.compute_dtype, (BATCH, 2, WIDTH)
    expected = {"context": context, **dict.fromkeys(EXPANDED, context)}
    expected |= dict.fromkeys(("expanded_shared", "expanded_full"), output)
    dtype = keras.backend.standardize_dtype(leaf.dtype)
    assert (dtype, tuple(leaf.shape)) == expected.get(name, exact)
    assert not to_numpy(ops.cast(leaf, "float32")).any()


@pytest.mark.parametrize("name", NAMES)
def test_dropped_weights_feed_no_recurrence(name):
    query, value, mask = arrays()
    layer = built(name, dropout=0.5, seed=1)
    options = {"value_mask": mask, "return_attention_scores": True}
    calm, wild = (
        layer(query, value, training=training, **options) for training in (False, True)
    )
    near(to_numpy(wild[1]), to_numpy(calm[1]), 1e-6)
    assert np.abs(to_numpy(wild[0]) - to_numpy(calm[0])).max() > 1e-2


@pytest.mark.parametrize("name", NAMES)
def test_the_output_in_training_is_made_of_the_same_parts(name):
    """At a rate that drops nothing, so that only the way of computing it differs."""
    query, value, mask = arrays()
    layer = built(name, dropout=1e-7, seed=1, use_bias=True)
    calm, wild = (
        layer(query, value, value_mask=mask, training=training)
        for training in (False, True)
    )
    near(to_numpy(wild), to_numpy(calm), 1e-5)


def test_the_extra_pair_is_dropped_as_well():
    """Else a context were 0 before the second position only."""
    layer = built("expanded_head_key", dropout=0.5, seed=1)
    layer.output_dense.kernel.assign(np.eye(WIDTH))
    layer.value_dense.kernel.assign(np.ones((WIDTH, WIDTH)))
    query, value, _ = arrays()
    value = np.abs(value[:, :1])
    output = to_numpy(layer(query, value, training=True))
    heads = output[:, 1:].reshape(BATCH, LENGTH - 1, HEADS, -1)
    assert 0.1 < (heads == 0).all(axis=-1).mean() < 0.4


@pytest.mark.parametrize("name", NAMES)
def test_other_widths(name):
    rng = np.random.default_rng(3)
    query, value, key = (normal(rng, 2, 5, width) for width in (16, 12, 10))
    layer = RecurrentCrossAttention(HEADS, name, key_dim=3, value_dim=5)
    if name == "expanded_shared":
        message = "as wide as `query`.*Received: key width=10, value width=12"
        with pytest.raises(ValueError, match=message):
            layer.build(query.shape, value.shape, key.shape)
        return
    layer.build(query.shape, value.shape, key.shape)
    randomize(layer)
    expected, _ = reference.REFERENCES["RecurrentCrossAttention"](
        layer.get_config(), reference.layer_weights(layer), query, value, key
    )
    near(to_numpy(forward(layer, query, value, key)), expected, 1e-5)


def test_one_pattern_may_hide_all_of_the_source_for_a_while():
    """Then nothing is remembered of these positions but what was before."""
    query, value, _ = arrays()
    pattern = np.ones((BATCH, LENGTH, SOURCE_LENGTH), bool)
    pattern[:, 1] = False
    for name in set(NAMES) - {"accumulated_energies"}:
        layer = built(name)
        found = forward(layer, query, value, attention_mask=pattern)
        expected, _ = reference.REFERENCES["RecurrentCrossAttention"](
            layer.get_config(),
            reference.layer_weights(layer),
            query,
            value,
            attention_mask=pattern,
        )
        near(to_numpy(found), expected, 1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_names_and_objects_and_configs_are_the_same(name):
    rule = recurrences.RECURRENCES[name]()
    layers = [RecurrentCrossAttention(HEADS, each, name="a") for each in (name, rule)]
    configs = [json.dumps(layer.get_config()) for layer in layers]
    assert configs[0] == configs[1]
    twin = RecurrentCrossAttention.from_config(json.loads(configs[0]))
    assert twin.recurrence == rule == recurrences.get(rule)


@pytest.mark.parametrize("name", ["context", "weights", "accumulated_weights"])
def test_what_queries_are_made_of_is_drawn_as_one_matrix(name):
    """What a recurrence adds to the query projection has the spread of the rest."""
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


def test_last_rows_of_a_matrix_by_head():
    constant = np.arange(5 * 6, dtype="float32").reshape(5, 6)

    def whole(shape, dtype=None):
        assert shape == (5, 6)
        return ops.convert_to_tensor(constant)

    rows = LastRows(whole, before=3)
    np.testing.assert_array_equal(to_numpy(rows((2, 6))), constant[3:])
    heads = constant[3:].reshape(2, 3, 2).swapaxes(0, 1)
    np.testing.assert_array_equal(to_numpy(rows((3, 2, 2))), heads)


def test_options_survive():
    rule = recurrences.AccumulatedEnergies(0.25, 2, renormalize=True, start="first")
    layer = RecurrentCrossAttention(HEADS, rule)
    config = json.loads(json.dumps(layer.get_config()))
    assert RecurrentCrossAttention.from_config(config).recurrence == rule


def test_unknown_recurrences_are_refused():
    with pytest.raises(ValueError, match="accumulated_weights.*Received: 'wieghts'"):
        RecurrentCrossAttention(HEADS, "wieghts")
    with pytest.raises(TypeError, match="recurrence.*Received: 3"):
        RecurrentCrossAttention(HEADS, 3)


@pytest.mark.parametrize("rate", [-0.1, float("inf"), float("nan")])
def test_bad_rates_are_refused(rate):
    with pytest.raises(ValueError, match="`rate`.*Received: "):
        recurrences.SubtractedWeights(rate)
