"""Building models from presets, and the contents of presets."""

import dataclasses
import json
import re

import keras
import pytest

from keras_attnvariants import presets
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.models import Transformer
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.presets.preset import learned_attention
from keras_attnvariants.presets.you2020 import INITIALIZERS
from tests.presets import tiny
from tests.selection import mostly_slow

TINY = {"hidden_dim": 16, "intermediate_dim": 24, "num_layers": 2}


def test_build_uses_the_published_options_unless_told_otherwise():
    preset = presets.get("you2020/base/iwslt16")
    model = preset.build(num_layers=1, intermediate_dim=8, vocabulary_size=50)
    assert isinstance(model, Transformer)
    assert model.hidden_dim == 288
    assert model.vocabulary_size == 50
    assert model.encoder_blocks[0].self_attention.num_heads == 4


def test_build_takes_any_argument_of_the_transformer():
    model = presets.get("you2020/hc-sa/iwslt16").build(
        vocabulary_size=50,
        dtype="mixed_bfloat16",
        cross_attention=DotProductAttention(num_heads=2),
        max_length=33,
        **TINY,
    )
    assert model.dtype_policy.name == "mixed_bfloat16"
    assert model.max_length == 33
    assert [b.cross_attention.num_heads for b in model.decoder_blocks] == [2, 2]


def test_lists_of_one_entry_per_layer_follow_the_number_of_layers():
    for num_layers in (1, 3):
        model = presets.get("you2020/sh-x/iwslt16").build(
            50, **{**TINY, "num_layers": num_layers}
        )
        heads = [b.cross_attention and 1 for b in model.decoder_blocks]
        assert heads == [None] * (num_layers - 1) + [1]


def test_an_argument_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="length_ratio"):
        presets.get("you2020/base/iwslt16").build(50, length_ratio=0.5, **TINY)


def test_two_builds_share_no_weights_and_leave_the_preset_as_it_was():
    preset = presets.get("kav/hc-all/multi30k")
    before = json.dumps(preset.config)
    first, second = (preset.build(50, **TINY) for _ in range(2))
    assert not {id(w) for w in first.weights} & {id(w) for w in second.weights}
    assert json.dumps(preset.config) == before


@pytest.mark.parametrize("name", mostly_slow(presets.names(), tiny.ONE_OF_EACH_PAPER))
def test_a_model_is_built_from_json_and_described_in_it(name):
    model = tiny.model(name)  # from JSON
    config = json.dumps(tiny.without_names(model.get_config()))
    again = tiny.built(type(model), config)
    assert tiny.without_names(again.get_config()) == json.loads(config)


def test_layer_by_layer_a_model_made_in_python_is_that_of_the_preset():
    one_head = DotProductAttention(
        num_heads=1, **{**INITIALIZERS, "output_initializer": "glorot_uniform"}
    )
    name = "you2020/sh-x-3-layers/small-wmt16-en-ro"
    heads = {"num_heads": 4}
    model = Transformer(
        vocabulary_size=11,
        num_layers=5,
        hidden_dim=tiny.SIZES["hidden_dim"],
        intermediate_dim=tiny.SIZES["intermediate_dim"],
        encoder_attention=HardCodedAttention(**heads, offsets=(-1, 1)),
        decoder_attention=HardCodedAttention(**heads, offsets=(-1, 0)),
        cross_attention=[None] * 2 + [one_head] * 3,
        normalization="post",
        max_length=tiny.SIZES["max_length"],
    )
    ours, theirs = (each.get_config() for each in (model, tiny.model(name)))
    assert tiny.without_names(ours) == tiny.without_names(theirs)


@pytest.mark.parametrize("name", presets.names())
def test_everything_a_preset_stores_is_json(name):
    preset = presets.get(name)
    assert json.loads(json.dumps(preset.config)) == preset.config
    assert json.loads(json.dumps(dict(preset.options))) == preset.options
    training = dataclasses.asdict(preset.training)
    assert json.loads(json.dumps(training)) == training
    published = dataclasses.asdict(preset.published)
    assert json.loads(json.dumps(published)) == published


def test_the_learning_rate_is_one_that_keras_can_deserialize():
    pytest.importorskip("keras_attnvariants.training.optimizers")
    deserialize = keras.optimizers.schedules.deserialize
    schedule = deserialize(presets.get("you2020/base/iwslt16").training.schedule)
    assert float(schedule(0)) == pytest.approx(3e-4, rel=1e-5)
    for step, rate in {
        25_000: 3e-4 - 0.25 * 2.9e-4,
        100_000: 1e-5,
        10**6: 1e-5,
    }.items():
        assert float(schedule(step)) == pytest.approx(rate, rel=1e-4)
    schedule = deserialize(presets.get("you2020/base/wmt16").training.schedule)
    assert float(schedule(3999)) == pytest.approx((512 * 4000) ** -0.5, rel=1e-5)
    schedule = deserialize(presets.get("kav/base/bible").training.schedule)
    assert float(schedule(400)) == pytest.approx(1.5e-3, rel=1e-5)


def test_parts_of_the_name_and_classes_of_attention():
    preset = presets.get("kav/sh-x/multi30k")
    assert (preset.variant, preset.corpus) == ("sh-x", "multi30k")
    assert preset.attention == {"HardCodedAttention", "DotProductAttention"}
    assert presets.get("kav/lstm/multi30k").attention == frozenset()
    assert presets.get("kav/lowest-2-ngram/multi30k").attention == {
        "NeuralNgram",
        "DotProductAttention",
    }


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("kav/base/bible", {"num_heads": 3}, "`num_heads` must divide.*num_heads=3"),
        ("kav/hc-sa/bible", {"num_heads": 3}, "`offsets` must divide num_heads=3"),
        ("kav/base/bible", {"heads": 4}, "heads"),
        ("kav/lstm/multi30k", {"num_heads": 4}, "num_heads"),
        ("kav/base/bible", {"num_layers": -1}, "`num_layers`.*Received: -1"),
        ("kav/base/bible", {"num_decoder_layers": 0}, "`num_decoder_layers`.*0"),
        ("kav/base/bible", {"dropout": "a"}, "`dropout` must be.*Received: 'a'"),
    ],
)
def test_wrong_options_are_one_line_and_found_without_building(
    name, overrides, message
):
    preset = presets.get(name)
    for method in (preset.check, preset.build):
        with pytest.raises(ValueError, match=message) as error:
            method(50, **overrides)
        assert "\n" not in str(error.value)


def test_right_options_pass_the_check():
    presets.get("kav/base/bible").check(50, num_heads=2, hidden_dim=8)
    presets.get("you2020/sh-x/iwslt16").check(num_layers=2)


def test_keras_deserializes_what_the_functions_return():
    config = layer_config("HardCodedAttention", num_heads=2, offsets=[-1, 1])
    layer = keras.saving.deserialize_keras_object(config)
    assert type(layer) is HardCodedAttention
    assert (layer.num_heads, layer.offsets) == (2, (-1, 1))
    layer = keras.saving.deserialize_keras_object(learned_attention(4, dropout=0.1))
    assert type(layer) is DotProductAttention
    assert (layer.num_heads, layer.get_config()["dropout"]) == (4, 0.1)


def test_a_preset_shows_itself_in_a_notebook():
    shown = presets.get("you2020/hc-sa/iwslt16")._repr_mimebundle_((), ())["text/html"]
    for line in (
        "layers +DotProductAttention, HardCodedAttention",
        "parameters +15,476,430",
        "num_layers +5",
        "published bleu +{'en-de': 30.3, 'de-en': 34.8}",
    ):
        assert re.search(line, shown), shown
    recurrent = presets.get("cs287/seq2seq/iwslt16")
    shown = recurrent._repr_mimebundle_((), ())["text/html"]
    assert re.search("model +Seq2SeqLSTM", shown) and "layers  " not in shown
