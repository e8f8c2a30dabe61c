"""The attention weights of a whole model: complete, right, and read in three ways."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants import backend
from keras_attnvariants.decoding import beam_search
from tests.attention.conformance import cases
from tests.models import naive
from tests.models import tiny
from tests.models.stepping import check_alignments

# NumPy 2.4 and TensorFlow 2.21 disagree about a keyword of `__array__`.
pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

EACH_FLAVOUR = pytest.mark.parametrize("flavour", tiny.FLAVOURS)


def read(model, batch=None, **options):
    batch = keras.tree.map_structure(ops.convert_to_tensor, batch or tiny.inputs())
    return keras.tree.map_structure(
        tiny.to_numpy, model.attention_scores(batch, **options)
    )


@EACH_FLAVOUR
def test_the_weights_are_those_of_the_equations(flavour):
    batch, model = tiny.inputs(), tiny.built(flavour)
    found = read(model)
    expected = naive.attention_scores(model, batch["source_ids"], batch["target_ids"])
    assert {block: set(scores) for block, scores in found.items()} == {
        block: set(scores) for block, scores in expected.items()
    }
    sides = {"encoder": batch["source_ids"], "decoder": batch["target_ids"]}
    for block, scores in found.items():
        real = (sides[block.split("_")[0]] != 0)[:, None, :, None]
        for role, weights in scores.items():
            assert weights.dtype == "float32"
            tiny.near(weights, np.where(real, expected[block][role], 0))


def test_every_block_is_listed_and_sublayers_without_weights_are_not():
    model = tiny.make(
        encoder_attention=[None, attention.NeuralNgram(tiny.HEADS)],
        decoder_attention=[tiny.decoder(), None],
        cross_attention=[None, tiny.learned()],
    )
    assert {block: list(scores) for block, scores in read(model).items()} == {
        "encoder_0": [],
        "encoder_1": [],
        "decoder_0": ["self"],
        "decoder_1": ["cross"],
    }


@pytest.mark.parametrize("flavour", tiny.BY_HAND)
def test_they_are_read_in_training_mode_too(flavour):
    model = tiny.built(flavour)
    exact, trained = read(model), read(model, training=True)
    keras.tree.assert_same_structure(exact, trained)
    for before, after in zip(*map(keras.tree.flatten, (exact, trained)), strict=True):
        assert before.shape == after.shape
        assert np.isfinite(after).all()


def test_dropped_weights_are_returned_whole():
    model = tiny.make(cross_attention=tiny.learned(dropout=0.5))
    weights = read(model, training=True)["decoder_0"]["cross"]
    real = tiny.inputs()["target_ids"] != 0
    tiny.near(weights.sum(-1), np.broadcast_to(real[:, None], weights.shape[:-1]))


@cases("float32", roles=("cross",))
def test_the_alignments_of_a_beam_search_are_those_of_a_full_pass(case):
    places = tiny.places(None, tiny.decoder(), case.layer())
    model = tiny.make(**places, num_layers=1, feed_forward=False)
    source = tiny.inputs()["source_ids"]
    tiny.randomize(model)
    found = beam_search(
        model,
        ops.convert_to_tensor(source),
        beam_size=3,
        n_best=2,
        max_length=6,
        return_alignments=True,
    )
    block = model.decoder_blocks[-1]

    def alignments(scores):
        # As in `step`, with a hypothesis for every position.
        rows = ops.transpose(scores[block.name]["cross"], (0, 2, 1, 3))
        return block.cross_attention.alignment(rows)

    check_alignments(model, source, found, alignments)


def test_shares_of_phrases_do_not_count_padding():
    layer = attention.PhraseAttention(
        tiny.HEADS, attention.Interleaved(look_ahead=True)
    )
    model = tiny.make(encoder_attention=layer)
    tiny.randomize(model)
    batch = tiny.inputs()
    found = []
    for source in (batch["source_ids"], np.pad(batch["source_ids"], ((0, 0), (0, 9)))):
        weights = read(model, {**batch, "source_ids": source})["encoder_0"]["self"]
        found.append(np.sum(layer.split_scores(weights), axis=(0, 1, 2, 5)))
    tiny.near(*found)


def test_the_weights_compile():
    model = tiny.built("another in every layer")
    batch = keras.tree.map_structure(ops.convert_to_tensor, tiny.inputs())
    compiled = keras.tree.map_structure(
        tiny.to_numpy, backend.jit(model.attention_scores)(batch)
    )
    keras.tree.map_structure(tiny.near, compiled, read(model))
