"""Parameter counts by place and kind, of our models and of any other."""

from io import StringIO

import keras
import numpy as np
import pytest
from rich.console import Console

from keras_attnvariants import presets
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.evaluation import parameter_summary
from keras_attnvariants.models import Transformer
from keras_attnvariants.presets.counting import without_arrays

WIDTH, INTERMEDIATE, VOCABULARY = 16, 24, 50
FEED_FORWARD = 2 * WIDTH * INTERMEDIATE + INTERMEDIATE + WIDTH
NORM = 2 * WIDTH


def make_transformer(**options) -> Transformer:
    return Transformer(
        vocabulary_size=VOCABULARY,
        num_layers=2,
        hidden_dim=WIDTH,
        intermediate_dim=INTERMEDIATE,
        encoder_attention=HardCodedAttention(num_heads=4, offsets=(-1, 1)),
        decoder_attention=DotProductAttention(num_heads=4),
        cross_attention=[None, DotProductAttention(num_heads=1)],
        **options,
    )


def test_transformer_by_place_and_kind():
    summary = parameter_summary(make_transformer(normalization="post"))
    # A hard-coded layer has two projections, a learned one four.
    assert summary.counts == {
        ("embeddings", "embeddings"): VOCABULARY * WIDTH,
        ("encoder", "attention"): 2 * 2 * WIDTH**2,
        ("encoder", "feed-forward"): 2 * FEED_FORWARD,
        ("encoder", "normalization"): 4 * NORM,
        ("decoder", "attention"): (2 + 1) * 4 * WIDTH**2,
        ("decoder", "feed-forward"): 2 * FEED_FORWARD,
        ("decoder", "normalization"): 5 * NORM,
    }


def test_norms_after_the_last_blocks_belong_to_encoder_and_decoder():
    summary = parameter_summary(make_transformer(normalization="pre"))
    assert summary.count("encoder", "normalization") == 5 * NORM
    assert summary.count("decoder", "normalization") == 6 * NORM
    assert summary.count(place="other") == 0


@pytest.mark.parametrize(("tying", "tables"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_shared_embeddings_count_once(tying, tables):
    model = make_transformer(tie_embeddings=tying)
    summary = parameter_summary(model)
    assert summary.count(kind="embeddings") == tables * VOCABULARY * WIDTH
    assert summary.total == model.count_params()


def test_places_and_kinds_add_up():
    summary = parameter_summary(make_transformer())
    assert sum(summary.to_dict()["by_place"].values()) == summary.total
    assert sum(summary.to_dict()["by_kind"].values()) == summary.total
    assert summary.count() == summary.total == summary.to_dict()["total"]


def test_frozen_weights_are_not_trainable():
    model = make_transformer()
    model.embeddings.trainable = False
    summary = parameter_summary(model)
    assert summary.total - summary.trainable == VOCABULARY * WIDTH


def test_functional_keras_model():
    source = keras.Input((5,), dtype="int32")
    x = keras.layers.Embedding(10, 8)(source)
    x = keras.layers.MultiHeadAttention(2, 4)(x, x)
    x = keras.layers.LayerNormalization()(x)
    model = keras.Model(source, keras.layers.Dense(3)(x))
    summary = parameter_summary(model)
    assert summary.to_dict()["by_kind"] == {
        "embeddings": 80,
        "attention": 4 * (8 * 8 + 8),
        "feed-forward": 0,
        "normalization": 16,
        "other": 27,
    }
    assert summary.count(place="embeddings") == 80
    assert summary.total == model.count_params()


def test_a_model_without_values_can_be_counted_in_full_size():
    preset = presets.get("you2020/sh-x/wmt16")
    model = without_arrays(lambda: preset.model.from_config(preset.config))
    summary = parameter_summary(model)
    assert summary.total == preset.parameters
    assert summary.count("decoder", "attention") == (6 * 2 + 4) * 512**2


def test_weights_a_model_adds_itself_are_counted():
    class Scaled(keras.Model):
        def build(self, input_shape):
            self.scale = self.add_weight(shape=(7,), trainable=False)

    model = Scaled()
    model.build((None, 7))
    summary = parameter_summary(model)
    assert summary.counts == {("other", "other"): 7}
    assert summary.trainable == 0


def test_seeds_of_dropout_are_not_parameters():
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dropout(0.5, seed=1), keras.layers.Dense(2)]
    )
    assert parameter_summary(model).total == 10


def test_table_names_every_part_and_the_total():
    console = Console(width=100, record=True, file=StringIO())
    summary = parameter_summary(make_transformer())
    console.print(summary)
    text = console.export_text()
    for heading in ("encoder", "decoder", "attention", "feed-forward"):
        assert heading in text
    assert f"{summary.total:,} of {summary.total:,} are trainable" in text


@pytest.mark.parametrize("model", [None, np.zeros(3), keras.layers.Dense(2)])
def test_layers_without_weights_are_refused(model):
    with pytest.raises(ValueError, match="must be a built Keras model .* Received: "):
        parameter_summary(model)
