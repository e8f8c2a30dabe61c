"""Proposals from known weights, and from the folder of a run."""

import json

import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants.data import load_corpus
from keras_attnvariants.training.run_settings import describe_model
from keras_attnvariants.training.training_config import describe_data
from keras_attnvariants.tuning import propose
from keras_attnvariants.tuning import propose_hybrids
from keras_attnvariants.tuning.hybrids import variant_of
from tests.analysis.fakes import KnownWeights
from tests.analysis.fakes import Words
from tests.analysis.fakes import looks
from tests.tuning.toy import toy_preset

LENGTH = 12
PAIRS = [("a b c d e f g h i j k l", "m n o p q r s t u v w")]
PLACES = ("encoder", "decoder", "cross")
WIDTH = 8


def heads(*offsets):
    """Two heads `[2, T, S]`; the offsets of each take turns from row to row."""
    rows = np.arange(LENGTH)
    found = [
        looks(*np.clip(rows + np.resize(turns, LENGTH), 0, LENGTH - 1))
        for turns in offsets
    ]
    return np.concatenate(found)


EVEN = np.full((2, LENGTH, LENGTH), 1 / LENGTH)
LEFT_RIGHT = heads([-1], [1])
# For no offset are most of the neighbours near.
WINDOW = heads([-2, 1], [-2, 1])
WIDE = heads([-4, 0, -4], [-4, -1, -4])


def proposal(encoder=EVEN, decoder=EVEN, cross=EVEN, **options):
    model = KnownWeights(
        encoder_0={"self": encoder}, decoder_0={"self": decoder, "cross": cross}
    )
    return propose(model, Words(), PAIRS, toy_preset(), **options)


def variants(layers):
    """The variants of a hybrid by place; those of the baseline are left out."""
    return {
        place.removesuffix("_attention"): variant_of(entry)
        for place, [entry] in layers.items()
    }


def test_local_heads_get_what_is_cheap_and_even_ones_stay():
    found = proposal(encoder=LEFT_RIGHT, decoder=WINDOW)
    rows = [(row.place, row.proposed, row.variant, row.saved) for row in found]
    assert rows == [
        # Neither queries nor keys.
        ("encoder", "hard-coded", "HardCodedAttention", 2 * WIDTH**2),
        # Three tokens, a slice of each for each head, instead of four matrices.
        ("decoder", "n-gram", "NeuralNgram", 4 * WIDTH**2 - 3 * WIDTH**2 // 2),
        ("cross", "learned", "DotProductAttention", 0),
    ]
    encoder, decoder, cross = found
    assert encoder.near == decoder.near == pytest.approx(1)
    even = (12 * 5 - 6) / 12 / 12
    assert (cross.near, cross.even, encoder.even) == pytest.approx((even,) * 3)
    # A first row has one key, a second two; all others have three of `i` near.
    causal = (3 + sum(3 / i for i in range(4, 13))) / 12
    assert decoder.even == pytest.approx(causal)
    assert encoder.offsets == "-1 +1"
    [layer] = found.hybrids["hard-coded"]["encoder_attention"]
    assert layer["config"]["offsets"] == [-1, 1]


def test_hybrids_go_from_cheap_to_dear():
    found = proposal(encoder=LEFT_RIGHT, decoder=WIDE, nearness=0.6)
    assert {name: variants(layers) for name, layers in found.hybrids.items()} == {
        "hard-coded": {"encoder": "HardCodedAttention", "decoder": "LocalAttention"},
        "n-gram": {"encoder": "NeuralNgram", "decoder": "LocalAttention"},
        "local": {"encoder": "LocalAttention", "decoder": "LocalAttention"},
        "learned": {},
    }
    [encoder] = found.hybrids["local"]["encoder_attention"]
    [decoder] = found.hybrids["local"]["decoder_attention"]
    # The windows that held enough of the weight: two and four tokens to each side.
    assert (encoder["config"]["n"], decoder["config"]["n"]) == (3, 5)


def test_the_space_has_the_hybrids_as_points_that_can_be_built():
    found = proposal(encoder=LEFT_RIGHT, decoder=WINDOW, cross=LEFT_RIGHT)
    preset = found.preset
    assert found.space.points(preset) == len(found.hybrids) == 4
    found.space.check(preset)
    counts = {
        name: preset.count(**found.space.arguments(preset, {"hybrid": name}).sizes)
        for name in found.hybrids
    }
    saved = sum(row.saved for row in found)
    assert counts["learned"] - counts["hard-coded"] == saved > 0
    assert counts["learned"] == preset.count()
    cross = found.hybrids["hard-coded"]["cross_attention"][0]["config"]
    assert (cross["offsets"], cross["length_ratio"]) == ([-1, 1], 1.0)
    # Cross-attention to a window of n-grams does not exist.
    assert "cross_attention" not in found.hybrids["n-gram"]


def test_even_heads_give_no_proposal():
    found = proposal()
    assert [row.proposed for row in found] == ["learned"] * 3
    assert found.hybrids == {"learned": {}}


def test_a_head_without_an_offset_keeps_a_layer_from_being_hard_coded():
    first = looks(*[0] * LENGTH)
    far = np.concatenate([LEFT_RIGHT[:1], first])
    # One head is even nearer than needed, for both.
    assert proposal(encoder=far).rows[0].proposed == "n-gram"
    assert proposal(encoder=far, nearness=0.5).rows[0].proposed == "learned"


def test_sentences_within_the_distance_give_no_proposal():
    """All weights are near, however they are distributed."""
    found = proposal(encoder=LEFT_RIGHT, decoder=WINDOW, distance=LENGTH)
    assert [row.proposed for row in found] == ["learned"] * 3


def test_a_larger_distance_proposes_more():
    options = {"encoder": WIDE, "nearness": 0.6}
    assert proposal(**options, distance=1).rows[0].proposed == "learned"
    assert proposal(**options, distance=2).rows[0].proposed == "local"
    assert proposal(**options, distance=4).rows[0].proposed == "n-gram"


@pytest.mark.parametrize(
    "options, message",
    [
        ({"distance": 0}, "`distance` must be"),
        ({"nearness": 1.1}, "`nearness` must be"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        proposal(**options)


def test_a_baseline_without_learned_attention():
    preset = toy_preset("kav/lstm/multi30k")
    with pytest.raises(ValueError, match="must have learned attention.*kav/lstm"):
        propose(KnownWeights(), Words(), PAIRS, preset)


@pytest.fixture(scope="module")
def corpus(corpus_folder, corpus_cache):
    return load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)


def write_run(folder, corpus, num_layers=2, name="kav/base/bible", **data):
    """Writes a run of an untrained model, whose sizes differ from its preset."""
    preset = toy_preset("kav/base/bible", num_layers=num_layers)
    model = preset.build(max_length=64)
    tokenizer = kav.Tokenizer.train(corpus.files("train"), vocabulary_size=50)
    kav.save_model(model, folder / "best", tokenizer)
    data = {**describe_data(preset, corpus, {}), "preset": name, **data}
    settings = {"training": {"data": data}, "model": describe_model(model)}
    (folder / "config.json").write_text(json.dumps(settings))
    event = {"event": "period", "step": 1, "val_loss": 3.0}
    (folder / "log.jsonl").write_text(json.dumps(event) + "\n")
    return folder


@pytest.mark.parametrize("name", ["kav/base/bible", "kav/hc-sa/bible"])
def test_a_run_is_proposed_for_in_its_own_sizes_and_attention(corpus, tmp_path, name):
    run = write_run(tmp_path, corpus, name=name)
    found = propose_hybrids(run, corpus, sentences=15)
    assert found.sentences == 15 and len(found) == 6
    assert found.preset.name == name and found.preset.config["num_layers"] == 2
    assert found.preset.attention == {"DotProductAttention"}
    assert found.preset.count() == kav.training.load_run(run).model.count_params()


def test_a_run_on_another_corpus(corpus, tmp_path):
    run = write_run(tmp_path, corpus, train_sentences="0")
    with pytest.raises(ValueError, match="a run on another corpus"):
        propose_hybrids(run, corpus)
