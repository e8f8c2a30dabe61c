"""Nguyen and Joty 2018: parameter counts, figures and the structure of each row."""

import pytest

from keras_attnvariants import presets
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import Heterogeneous
from keras_attnvariants.attention import Homogeneous
from keras_attnvariants.attention import Interleaved
from keras_attnvariants.attention import PhraseAttention
from tests.presets import tiny

COUNTS = {  # millions, for en-de
    "base": 63.05,
    "big": 214.18,
    "base-depth-10": 92.45,
    "homogeneous-conv-kv-44": 67.77,
    "homogeneous-query-k-44": 67.77,
    "homogeneous-conv-kv-323": 72.48,
    "homogeneous-query-k-323": 72.48,
    "heterogeneous-conv-kv-12": 81.92,
    "heterogeneous-query-k-12": 81.92,
    "conv-kv-12-depth-4": 60.93,
    "heterogeneous-conv-kv-123": 110.23,
    "heterogeneous-query-k-123": 110.23,
    "heterogeneous-conv-kv-1234": 147.98,
    "heterogeneous-query-k-1234": 147.98,
    "interleaved-conv-kv": 97.65,
    "interleaved-query-k": 116.53,
}

STRUCTURES = {
    "homogeneous-conv-kv-44": Homogeneous((4, 4)),
    "homogeneous-query-k-44": Homogeneous((4, 4)),
    "homogeneous-conv-kv-323": Homogeneous((3, 2, 3)),
    "homogeneous-query-k-323": Homogeneous((3, 2, 3)),
    "conv-kv-12-depth-4": Heterogeneous((1, 2)),
    "heterogeneous-conv-kv-12": Heterogeneous((1, 2)),
    "heterogeneous-query-k-123": Heterogeneous((1, 2, 3)),
    "heterogeneous-conv-kv-1234": Heterogeneous((1, 2, 3, 4)),
    "interleaved-conv-kv": Interleaved(),
    "interleaved-query-k": Interleaved(),
}


def en_de(row):
    return presets.get(f"nguyen2018/{row}/wmt16-en-de")


@pytest.mark.parametrize("row", COUNTS)
def test_parameters_in_millions(row):
    assert round(en_de(row).parameters / 1e6, 2) == COUNTS[row]


def test_one_preset_for_every_row_of_both_tables():
    names = [name for name in presets.names() if name.startswith("nguyen2018/")]
    german = {name.split("/")[1] for name in names if name.endswith("en-de")}
    russian = {name.split("/")[1] for name in names if name.endswith("en-ru")}
    assert german == set(COUNTS)
    assert german - russian == {"base-depth-10", "conv-kv-12-depth-4"}
    assert russian < german


def test_figures_of_the_paper():
    assert en_de("base").published.bleu == {"en-de": 26.07, "de-en": 29.82}
    assert en_de("big").published.bleu == {"en-de": 26.63}
    assert en_de("base-depth-10").published.bleu == {"en-de": 26.60}
    assert en_de("conv-kv-12-depth-4").published.bleu == {"en-de": 26.63}
    assert en_de("interleaved-query-k").published.bleu["en-de"] == 27.40
    assert en_de("interleaved-query-k").published.parameters == 116_000_000
    russian = presets.get("nguyen2018/heterogeneous-query-k-1234/wmt16-en-ru")
    assert russian.published.bleu == {"en-ru": 37.39, "ru-en": 35.43}
    assert russian.options["vocabulary_size"] == 40_000
    big = presets.get("nguyen2018/big/wmt16-en-ru")
    assert big.published.bleu == {"en-ru": 34.64}


def test_training_of_base_and_big():
    base, big = en_de("base").training, en_de("big").training
    assert (base.steps, big.steps) == (500_000, 1_000_000)
    assert (base.batch_tokens, big.batch_tokens) == (8192, 4096)
    assert base.schedule["config"]["warmup_steps"] == 16_000
    assert (base.beam_size, base.length_penalty) == (5, 0.6)
    assert base.averaged_checkpoints == 5


def test_sizes_of_deep_and_shallow_models():
    assert en_de("base-depth-10").options["num_layers"] == 10
    assert en_de("conv-kv-12-depth-4").options["num_layers"] == 4
    assert en_de("big").options["num_heads"] == 16


@pytest.mark.parametrize("row", STRUCTURES)
def test_all_attention_has_the_structure_and_the_scoring_of_the_row(row):
    model = tiny.model(f"nguyen2018/{row}/wmt16-en-de")
    expected = STRUCTURES[row]
    for block in model.decoder_blocks:
        for layer in (block.self_attention, block.cross_attention):
            assert isinstance(layer, PhraseAttention)
            assert layer.structure == expected
            assert layer.scoring.replace("_", "-") in row
            assert layer.dropout_layer.rate == 0.1
    if expected == Interleaved():
        expected = Interleaved(look_ahead=True)
    for block in model.encoder_blocks:
        assert block.self_attention.structure == expected


def test_base_has_plain_attention():
    model = tiny.model("nguyen2018/base/wmt16-en-de")
    for block in model.decoder_blocks:
        assert type(block.self_attention) is DotProductAttention
        assert type(block.cross_attention) is DotProductAttention


def test_groups_of_heads_keep_their_proportions():
    halves = en_de("homogeneous-conv-kv-44")
    config = halves.architecture(**{**halves.options, "num_heads": 4})
    structure = config["encoder_attention"]["config"]["structure"]
    assert structure["config"]["heads"] == [2, 2]
    sizes = {**tiny.sizes(halves.name), "num_heads": 3}
    with pytest.raises(ValueError, match=r"proportions of \(4, 4\). Received: 3"):
        halves.build(**sizes)
