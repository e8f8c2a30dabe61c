"""A model adds the loss of its guided attention in training, and only then."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.attention import Homogeneous
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.models import Seq2SeqLSTM
from keras_attnvariants.models.base import Guidance
from tests.models import tiny

CROSS = {
    "learned": tiny.learned(),
    "recurrent": RecurrentCrossAttention(tiny.HEADS, "accumulated_weights"),
    "phrases": PhraseAttention(tiny.HEADS, Homogeneous((1, 2, 1))),
}


def aligned_inputs():
    inputs = tiny.inputs()
    shape = (tiny.BATCH, tiny.TARGET_LENGTH, tiny.SOURCE_LENGTH)
    return inputs | {"alignments": np.zeros(shape, bool)}


def noted(layer):
    """Guidance that records the weights it was given; its loss is their sum."""
    weights = []

    def loss(given, inputs):
        weights.append(given)
        return ops.sum(given)

    return Guidance(layer, loss), weights


@pytest.mark.parametrize("kind", CROSS)
def test_weights_are_those_of_the_layer(kind):
    model = tiny.make(cross_attention=CROSS[kind], dropout=0.0)
    inputs = aligned_inputs()
    scores = model.attention_scores(inputs)["decoder_1"]["cross"]
    attention = model.decoder_blocks[1].cross_attention
    if kind == "phrases":
        scores = attention.token_scores(scores)
    expected = tiny.to_numpy(scores).mean(1)
    model.guidance, weights = noted(2)
    logits = model(inputs, training=True)
    tiny.near(logits, model(tiny.inputs()))
    real = (inputs["target_ids"] != 0)[..., None]
    tiny.near(tiny.to_numpy(weights[0]) * real, expected * real)


def test_the_loss_is_added_in_training_with_alignments_only():
    model = tiny.make(dropout=0.0)
    model.guidance, weights = noted(1)
    model(aligned_inputs(), training=True)
    tiny.near(model.losses, [ops.sum(weights[0])])
    for inputs, training in ((aligned_inputs(), False), (tiny.inputs(), True)):
        model(inputs, training=training)
        assert model.losses == [] and len(weights) == 1
    assert "guidance" not in model.get_config()


def test_layers_that_can_be_guided():
    cross = [None, tiny.cross(length_ratio=1.0), tiny.learned()]
    model = tiny.make(cross_attention=cross, num_decoder_layers=3)
    assert model.guidable_layers() == [3]
    for attention in (True, False):
        model = Seq2SeqLSTM(20, 8, 8, attention=attention)
        assert model.guidable_layers() == ([1] if attention else [])


def test_a_recurrent_model_is_guided():
    keras.utils.set_random_seed(1)
    model = Seq2SeqLSTM(tiny.VOCABULARY, 8, 8)
    model.guidance, weights = noted(1)
    inputs = aligned_inputs()
    model(inputs, training=True)
    expected = tiny.to_numpy(model.attention_scores(inputs)["decoder"]["cross"])[:, 0]
    real = (inputs["target_ids"] != 0)[..., None]
    tiny.near(tiny.to_numpy(weights[0]) * real, expected)
