"""Recurrent cross-attention: the numbers and sizes of the paper, and the layer."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention import recurrences
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


@pytest.mark.parametrize(
    "name, added",
    [*zip(NAMES, [32768, 512, 512, 0, 524288, 65536, 32768, 0, 0], strict=True)],
)
def test_parameters_beyond_the_baseline(name, added):
    """The paper's Transformer has width 512 and 8 heads."""
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
    expected = {"context": context, **dict.fromkeys(EXPANDED, context)}
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
    """The rate is so small that nothing is dropped: only the computation differs."""
    query, value, mask = arrays()
    layer = built(name, dropout=1e-7, seed=1, use_bias=True)
    calm, wild = (
        layer(query, value, value_mask=mask, training=training)
        for training in (False, True)
    )
    near(to_numpy(wild), to_numpy(calm), 1e-5)


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
    """Positions without a visible source leave the state unchanged."""
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
