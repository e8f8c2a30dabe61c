"""Phrase attention: its structures and scorings, its sizes and its refusals."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import Heterogeneous
from keras_attnvariants.attention import Homogeneous
from keras_attnvariants.attention import PhraseAttention
from tests.attention.conformance import forward
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import to_numpy
from tests.attention.phrases.tools import BATCH
from tests.attention.phrases.tools import HEADS
from tests.attention.phrases.tools import HETEROGENEOUS
from tests.attention.phrases.tools import HOMOGENEOUS
from tests.attention.phrases.tools import INTERLEAVED
from tests.attention.phrases.tools import LENGTH
from tests.attention.phrases.tools import LOOKING_AHEAD
from tests.attention.phrases.tools import SCORINGS
from tests.attention.phrases.tools import STRUCTURES
from tests.attention.phrases.tools import WIDTH
from tests.attention.phrases.tools import inputs
from tests.attention.phrases.tools import layer_of
from tests.reference import layer_weights


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
    """Counts in squares of the width: queries, keys, values and output."""
    for scoring, units in (("conv_kv", conv_kv), ("query_k", query_k)):
        layer = layer_of(structure, scoring)
        assert layer.count_params() == units * WIDTH**2


@pytest.mark.parametrize("structure", [HETEROGENEOUS, INTERLEAVED])
def test_orders_with_equal_keys_share_them(structure):
    shared = layer_of(structure, "query_k")
    own = layer_of(structure, "query_k_by_order")
    assert own.count_params() == shared.count_params() + WIDTH**2
    kernels = {w.path.split("/", 1)[1]: w for w in shared.weights}
    for weight in own.weights:
        name = weight.path.split("/", 1)[1]
        in_shared = "key/kernel" if name.startswith("key_") else name
        weight.assign(kernels[in_shared])
    x = inputs()
    outputs = [to_numpy(forward(layer, x, x)) for layer in (own, shared)]
    near(*outputs, 1e-6)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_a_sentence_too_short_for_an_ngram_gives_nothing(scoring):
    layer = layer_of(Heterogeneous((2, 3)), scoring)
    x, mask = inputs(), lengths_mask([1, 2], LENGTH)
    output = to_numpy(forward(layer, x, x, value_mask=mask))
    assert not output[0].any()
    assert output[1].any()


@pytest.mark.parametrize("structure", [HOMOGENEOUS, HETEROGENEOUS, INTERLEAVED])
@pytest.mark.parametrize("scoring", SCORINGS)
def test_tokens_hidden_from_a_query_are_hidden_in_every_ngram(structure, scoring):
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


@pytest.mark.parametrize("structure", [HOMOGENEOUS, HETEROGENEOUS, INTERLEAVED])
def test_cross_attention_keeps_at_most_one_input(structure):
    layer = layer_of(structure)
    memory = layer.prepare(ops.convert_to_tensor(inputs()))
    state = layer.initial_state(2, 5, 9, memory=memory)
    expected = {"inputs": (2, 5, WIDTH)} if structure is INTERLEAVED else {}
    assert {name: leaf.shape for name, leaf in state.items()} == expected


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


@pytest.mark.skipif(
    backend.name() != "tensorflow", reason="only TensorFlow has dynamic shapes"
)
@pytest.mark.parametrize("structure", [HOMOGENEOUS, INTERLEAVED, LOOKING_AHEAD])
def test_lengths_may_be_dynamic(structure):
    import tensorflow as tf

    layer, x = layer_of(structure, "query_k"), inputs()
    spec = tf.TensorSpec((None, None, WIDTH))
    dynamic = tf.function(lambda x: layer(x, x), input_signature=[spec])
    for length in (LENGTH, 2):
        shorter = x[:, :length]
        expected = to_numpy(forward(layer, shorter, shorter))
        near(to_numpy(dynamic(shorter)), expected, 1e-5)
