"""Phrase attention: its structures and scorings, its sizes and its refusals."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import Heterogeneous
from keras_attnvariants.attention import Homogeneous
from keras_attnvariants.attention import Interleaved
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.models import Transformer
from tests.attention.conformance import forward
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import normal
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy
from tests.reference import layer_weights

HEADS, WIDTH = 8, 16
BATCH, LENGTH = 2, 6
SCORINGS = ("conv_kv", "query_k")
HOMOGENEOUS, HETEROGENEOUS = Homogeneous((4, 4)), Heterogeneous((1, 2))
INTERLEAVED, LOOKING_AHEAD = Interleaved(), Interleaved(look_ahead=True)
STRUCTURES = (HOMOGENEOUS, HETEROGENEOUS, INTERLEAVED, LOOKING_AHEAD)


def layer_of(structure, scoring="conv_kv", width=WIDTH, **options):
    layer = PhraseAttention(HEADS, structure, scoring, **options)
    layer.build((None, None, width), (None, None, width))
    randomize(layer)
    return layer


def inputs(*shape, seed=0):
    return normal(np.random.default_rng(seed), *(shape or (BATCH, LENGTH, WIDTH)))


def scores_of(layer, *arrays, **kwargs):
    _, scores = forward(layer, *arrays, return_attention_scores=True, **kwargs)
    return to_numpy(layer.split_scores(scores))  # [B, H, T, M, N, S]


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("structure", [Homogeneous((HEADS,)), Heterogeneous((1,))])
def test_unigrams_alone_are_plain_attention(structure, scoring):
    x, mask = inputs(), lengths_mask([LENGTH, 3], LENGTH)
    layer = layer_of(structure, scoring)
    plain = DotProductAttention(HEADS)
    plain.build(x.shape, x.shape)
    kernels = layer_weights(layer)
    for weight in plain.weights:
        kind = weight.path.split("/")[-2]
        (name,) = [name for name in kernels if f"{kind}" in name]
        weight.assign(kernels[name])
    options = {"value_mask": mask, "return_attention_scores": True}
    for found, expected in zip(
        forward(layer, x, x, **options), forward(plain, x, x, **options), strict=True
    ):
        near(to_numpy(found), to_numpy(expected), 1e-5)


@pytest.mark.parametrize("scoring, ratio", [("conv_kv", 1.0), ("query_k", 0.5**0.5)])
def test_bigrams_that_ignore_a_token_are_unigrams(scoring, ratio):
    """Up to the scale, which for kernels of two taps is smaller."""
    layer = layer_of(HETEROGENEOUS, scoring)
    named = {w.path.split("/")[-2]: w for w in layer.weights}
    if scoring == "conv_kv":
        old = np.zeros((WIDTH, WIDTH))
        named["key_2"].assign(np.concatenate([old, to_numpy(named["key_1"].value)]))
    else:
        taps = to_numpy(named["query_1_1"].value).reshape(WIDTH, HEADS, -1)
        taps = np.concatenate([0 * taps, taps], axis=-1)
        named["query_1_2"].assign(taps.reshape(WIDTH, -1))
    weights = scores_of(layer, inputs(), inputs())[:, :, :, 0]  # [B, H, T, N, S]
    logits = np.log(weights[..., 1:])
    unigrams, bigrams = logits[..., 0, :], logits[..., 1, :]
    # Logits are known up to a constant, different in every row.
    near(np.diff(bigrams), ratio * np.diff(unigrams), 1e-4)


UNITS = [
    (HOMOGENEOUS, 1 + 1.5 + 1.5 + 1, 1.5 + 1 + 1.5 + 1),
    (Homogeneous((3, 2, 3)), 1 + 2 + 2 + 1, 2 + 1 + 2 + 1),
    (Heterogeneous((1, 2)), 1 + 3 + 3 + 1, 3 + 1 + 3 + 1),
    (Heterogeneous((1, 2, 3)), 1 + 6 + 6 + 1, 6 + 1 + 6 + 1),
    (Heterogeneous((1, 2, 3, 4)), 1 + 10 + 10 + 1, 10 + 1 + 10 + 1),
    (INTERLEAVED, 3 + 3 + 3 + 2, 9 + 1 + 3 + 2),
    (LOOKING_AHEAD, 3 + 3 + 3 + 3, 9 + 1 + 3 + 3),
]


@pytest.mark.parametrize("structure, conv_kv, query_k", UNITS, ids=str)
def test_parameter_counts(structure, conv_kv, query_k):
    """In squares of the width: queries, keys, values and output."""
    for scoring, units in (("conv_kv", conv_kv), ("query_k", query_k)):
        layer = layer_of(structure, scoring)
        assert layer.count_params() == units * WIDTH**2


def test_border_ngrams_exist_in_the_homogeneous_structure_only():
    x = inputs()
    homogeneous = scores_of(layer_of(HOMOGENEOUS), x, x)
    assert (homogeneous > 0).all()
    heterogeneous = scores_of(layer_of(Heterogeneous((1, 2, 3))), x, x)[:, :, :, 0]
    for block, order in enumerate((1, 2, 3)):
        assert not heterogeneous[:, :, :, block, : order - 1].any()
        assert (heterogeneous[:, :, :, block, order - 1 :] > 0).all()


@pytest.mark.parametrize("scoring", SCORINGS)
def test_a_sentence_too_short_for_an_ngram_gives_nothing(scoring):
    layer = layer_of(Heterogeneous((2, 3)), scoring)
    x, mask = inputs(), lengths_mask([1, 2], LENGTH)
    output = to_numpy(forward(layer, x, x, value_mask=mask))
    assert not output[0].any()
    assert output[1].any()


@pytest.mark.parametrize("structure", [HOMOGENEOUS, HETEROGENEOUS, INTERLEAVED])
@pytest.mark.parametrize("scoring", SCORINGS)
def test_what_is_hidden_from_a_query_is_hidden_in_every_ngram(structure, scoring):
    layer, x, hidden = layer_of(structure, scoring), inputs(), 3
    pattern = np.arange(LENGTH)[None] != hidden
    pattern = np.broadcast_to(pattern, (LENGTH, LENGTH))
    changed = x.copy()
    changed[:, hidden] += 5.0
    query = inputs(seed=1)
    before, after = (
        forward(layer, query, v, attention_mask=pattern) for v in (x, changed)
    )
    near(to_numpy(after), to_numpy(before), 1e-6)


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_padding_on_the_left_is_like_a_sentence_that_begins_there(structure, scoring):
    layer, x, extra = layer_of(structure, scoring), inputs(), 3
    padded = np.pad(x, ((0, 0), (extra, 0), (0, 0)), constant_values=7.0)
    mask = np.arange(LENGTH + extra) >= extra
    mask = np.broadcast_to(mask, (BATCH, LENGTH + extra))
    whole = forward(layer, padded, padded, query_mask=mask, value_mask=mask)
    near(to_numpy(whole)[:, extra:], to_numpy(forward(layer, x, x)), 1e-5)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_phrases_ask_for_two_tokens(scoring):
    """There is none at the first position, and the second depends on the first."""
    layer, source = layer_of(INTERLEAVED, scoring), inputs(seed=2)
    query = inputs()
    weights = scores_of(layer, query, source)
    assert not weights[:, :, 0, 1].any()
    np.testing.assert_allclose(weights[:, :, 0, 0].sum((-1, -2)), 1.0, atol=1e-5)
    np.testing.assert_allclose(weights[:, :, 1:].sum((-1, -2)), 1.0, atol=1e-5)
    query[:, 0] += 1.0
    moved = np.abs(scores_of(layer, query, source) - weights).max((0, 1, 4, 5))
    assert moved[1, 1] > 1e-3  # the phrase of the first two
    assert moved[1, 0] == moved[2:].max() == 0.0


def test_state_is_what_the_equations_need():
    """Caches by order, keys only once for QueryK, and the last inputs."""
    shapes = {}
    for scoring in SCORINGS:
        layer = layer_of(Heterogeneous((1, 2, 3)), scoring)
        state = layer.initial_state(2, 5, 9)
        (cache,) = state.pop("groups")
        shapes[scoring] = {k: v.shape for k, v in (cache | state).items()}
    lead, head = (2, 5), (9, HEADS, WIDTH // HEADS)
    inputs = (*lead, 2 * WIDTH)
    value = (*lead, 3, *head)
    assert shapes == {
        "conv_kv": {"key": (*lead, 3, *head), "value": value, "inputs": inputs},
        "query_k": {"key": (*lead, 1, *head), "value": value, "inputs": inputs},
    }


@pytest.mark.parametrize("structure", [HOMOGENEOUS, HETEROGENEOUS, INTERLEAVED])
def test_cross_attention_keeps_at_most_one_input(structure):
    layer = layer_of(structure)
    memory = layer.prepare(ops.convert_to_tensor(inputs()))
    state = layer.initial_state(2, 5, 9, memory=memory)
    expected = {"inputs": (2, 5, WIDTH)} if structure is INTERLEAVED else {}
    assert {name: leaf.shape for name, leaf in state.items()} == expected


def test_keys_of_another_width():
    layer = PhraseAttention(HEADS, HETEROGENEOUS, key_dim=3, value_dim=5)
    layer.build((None, None, 16), (None, None, 12), (None, None, 10))
    expected = 24 * 16 + 24 * (10 + 20) + 40 * (12 + 24) + 40 * 16
    assert layer.count_params() == expected


def test_structures_are_values():
    for structure in (*STRUCTURES, Homogeneous([0, 8]), Heterogeneous([2])):
        layer = PhraseAttention(HEADS, structure)
        twin = PhraseAttention.from_config(layer.get_config())
        assert twin.structure == structure
        assert hash(twin.structure) == hash(structure)
    assert len({PhraseAttention(HEADS, s).structure for s in STRUCTURES}) == 4


@pytest.mark.parametrize("options", [{"use_causal_mask": True}, {"attention_mask": 0}])
def test_looking_ahead_refuses_what_it_cannot_honour(options):
    x = inputs()
    if "attention_mask" in options:
        options = {"attention_mask": np.ones((BATCH, LENGTH, LENGTH), bool)}
    with pytest.raises(ValueError, match=f"look_ahead.*{next(iter(options))}"):
        layer_of(LOOKING_AHEAD)(x, x, **options)


def test_a_model_refuses_to_look_ahead_in_a_decoder():
    def model(**places):
        learned = DotProductAttention(2)
        names = ("encoder_attention", "decoder_attention", "cross_attention")
        return Transformer(20, 1, 16, 16, **{**dict.fromkeys(names, learned), **places})

    model(encoder_attention=PhraseAttention(2, LOOKING_AHEAD))
    model(cross_attention=PhraseAttention(2, INTERLEAVED))
    for place, structure in (
        ("decoder", LOOKING_AHEAD),
        ("cross", LOOKING_AHEAD),
        ("encoder", INTERLEAVED),
    ):
        places = {f"{place}_attention": PhraseAttention(2, structure)}
        hint = r"PhraseAttention\(structure="
        with pytest.raises(ValueError, match=f"cannot serve as {place} .*{hint}"):
            model(**places)


@pytest.mark.parametrize(
    "make, error, argument",
    [
        (lambda: Homogeneous((4, -4, 8)), ValueError, "heads"),
        (lambda: Homogeneous((2.0, 6.0)), ValueError, "heads"),
        (lambda: Homogeneous((0, 0)), ValueError, "heads"),
        (lambda: Heterogeneous(()), ValueError, "orders"),
        (lambda: Heterogeneous((0, 1)), ValueError, "orders"),
        (lambda: Heterogeneous((2, 1)), ValueError, "orders"),
        (lambda: Heterogeneous((1, 1)), ValueError, "orders"),
        (lambda: PhraseAttention(8, Homogeneous((4, 3))), ValueError, "num_heads=8"),
        (lambda: PhraseAttention(8, scoring="conv"), ValueError, "scoring"),
        (lambda: PhraseAttention(8, "homogeneous"), TypeError, "structure"),
        (lambda: PhraseAttention(8, key_dim=0), ValueError, "key_dim"),
    ],
)
def test_bad_arguments_are_refused(make, error, argument):
    with pytest.raises(error, match=f"{argument}.*Received: "):
        make()


def test_serialized_layers_are_plain_json():
    layer = PhraseAttention(HEADS, Homogeneous((3, 2, 3)), "query_k")
    config = keras.saving.serialize_keras_object(layer)["config"]
    assert config["structure"]["class_name"] == "Homogeneous"
    assert config["structure"]["config"] == {"heads": [3, 2, 3]}
    short = {"class_name": "keras_attnvariants>Interleaved", "config": {}}
    assert PhraseAttention(HEADS, short).structure == INTERLEAVED
