"""Models carry the search settings of their preset, through every way of saving."""

import json

import keras
import numpy as np
import pytest
from keras import ops

import keras_attnvariants as kav
from keras_attnvariants import presets
from keras_attnvariants.models import SearchSettings
from tests.decoding.toys import greedy_search
from tests.models import tiny

SMALL = {"hidden_dim": 24, "num_heads": 2, "num_layers": 1, "intermediate_dim": 8}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("rosendahl2021/context/wmt16-ro-en", SearchSettings(12)),
        ("nguyen2018/heterogeneous-conv-kv-12/wmt16-en-de", SearchSettings(5)),
        ("you2020/hc-sa/iwslt16", SearchSettings(4, 0.6, 50)),
        ("cs287/megatron/iwslt16-de-en", SearchSettings(3, 0.0, 30)),
    ],
)
def test_a_preset_gives_its_settings_to_its_model(name, settings):
    model = presets.get(name).build(vocabulary_size=20, **SMALL)
    assert model.search_settings == settings
    config = json.loads(json.dumps(model.get_config()))
    assert type(model).from_config(config).search_settings == settings


def test_they_are_saved_with_the_model(tmp_path):
    model = tiny.make(search_settings=SearchSettings(7, 0.3, 9))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.search_settings == SearchSettings(7, 0.3, 9)
    folder = kav.save_model(model, tmp_path / "model")
    assert kav.load_model(folder).model.search_settings == SearchSettings(7, 0.3, 9)


def test_a_translator_takes_them_unless_told_otherwise():
    model = tiny.make(search_settings={"beam_size": 7, "length_penalty": 0.3})
    assert kav.Translator(model, None).beam_size == 7
    assert kav.Translator(model, None, beam_size=2).beam_size == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"beam_size": 0}, "`beam_size` must be a positive integer. Received: 0"),
        ({"beam_size": 1001}, "`beam_size` must be at most 1000. Received: 1001"),
        ({"extra_length": -1}, "`extra_length` must be an integer >= 0"),
        ({"length_penalty": float("inf")}, "`length_penalty` must be .* Received: inf"),
        ({"length_penalty": True}, "`length_penalty` must be .* Received: True"),
    ],
)
def test_anything_but_a_search_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        SearchSettings(**fields)


LIMITS = {"min_length": 4, "no_repeat_ngram": 2}


@pytest.mark.parametrize(
    "search", [greedy_search, kav.beam_search, kav.decoding.sample]
)
def test_a_search_keeps_to_the_limits_of_the_model(search):
    plain, limited = (tiny.make(search_settings=own) for own in ({}, LIMITS))
    for model in (plain, limited):
        tiny.randomize(model)
    source_ids = tiny.inputs()["source_ids"]
    given = search(plain, source_ids, max_length=12, **LIMITS)
    own = search(limited, source_ids, max_length=12)
    np.testing.assert_array_equal(own.ids, given.ids)
    assert tiny.to_numpy(own.lengths).min() > 4
    free = search(plain, source_ids, max_length=12)
    off = search(limited, source_ids, max_length=12, min_length=0, no_repeat_ngram=0)
    np.testing.assert_array_equal(off.ids, free.ids)
    assert (tiny.to_numpy(own.ids) != tiny.to_numpy(free.ids)).any()


def test_a_shorter_limit_of_a_call_wins():
    model = tiny.make(search_settings={"min_length": 9})
    source_ids = tiny.inputs()["source_ids"]
    for longest in (3, [3, 3, 3]):
        found = kav.beam_search(model, source_ids, max_length=longest)
        assert tiny.to_numpy(found.lengths).tolist() == [[3]] * 3
    for own in ([3, 0, 20], np.array([3, 0, 20]), ops.convert_to_tensor([3, 0, 20])):
        found = kav.beam_search(model, source_ids, max_length=own)
        lengths = tiny.to_numpy(found.lengths)[:, 0].tolist()
        assert lengths[0] == 3 and min(lengths[1:]) > 9
        with pytest.raises(ValueError, match="`max_length` must be"):
            kav.beam_search(model, source_ids, max_length=[3, -1, 20])
    with pytest.raises(ValueError, match="`min_length` must be below 3"):
        kav.beam_search(model, source_ids, max_length=3, min_length=9)


def test_a_translator_has_the_limits_of_the_model():
    texts = ["a b c d e f g h i j k l m n o p"]
    tokenizer = kav.Tokenizer.train(texts * 4, vocabulary_size=22)
    model = tiny.make(search_settings=LIMITS)
    tiny.randomize(model)
    own = kav.Translator(model, tokenizer, max_length=12)(texts)
    model.search_settings = kav.models.SearchSettings()
    assert own != kav.Translator(model, tokenizer, max_length=12)(texts)
    assert own == kav.Translator(model, tokenizer, max_length=12, **LIMITS)(texts)
