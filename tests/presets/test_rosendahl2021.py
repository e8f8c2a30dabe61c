"""Rosendahl et al. 2021: parameter counts, figures, and places of the recurrence."""

import pytest

from keras_attnvariants import presets
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention import recurrences
from tests.presets import tiny

BASELINE = 53_898_389
ADDED = {
    "baseline": 0,
    "context": 196_608,
    "weights": 3_072,
    "accumulated-weights": 3_072,
    "expanded-shared": 0,
    "expanded-full": 3_145_728,
    "expanded-head": 393_216,
    "expanded-head-key": 196_608,
    "accumulated-energies": 0,
    "subtracted-weights": 0,
}


def ro_en(variant):
    return presets.get(f"rosendahl2021/{variant}/wmt16-ro-en")


@pytest.mark.parametrize("variant", ADDED)
def test_parameters(variant):
    assert ro_en(variant).parameters == BASELINE + ADDED[variant]


def test_one_preset_for_every_row_of_both_tables():
    names = [name for name in presets.names() if name.startswith("rosendahl2021/")]
    scored = [name for name in names if presets.get(name).published.bleu]
    assert len(scored) == 3 * 7  # Table 2
    developed = [name for name in names if presets.get(name).published.dev_bleu]
    assert len(developed) == 5  # Table 1
    assert set(names) == {*scored, *developed}


def test_figures_of_the_paper():
    published = ro_en("expanded-shared").published
    assert (published.bleu, published.ter) == ({"ro-en": 34.0}, {"ro-en": 53.6})
    assert published.dev_bleu == {"ro-en": 35.9}
    assert published.dev_ter == {"ro-en": 51.1}
    assert published.relative_training_time == 7.5
    assert ro_en("expanded-head-key").published.dev_ter == {"ro-en": 53.2}
    published = presets.get("rosendahl2021/subtracted-weights/wmt18").published
    assert (published.bleu, published.ter) == ({"tr-en": 19.5}, {"tr-en": 71.2})
    published = presets.get("rosendahl2021/weights/iwslt17").published
    assert (published.bleu, published.ter) == ({"en-it": 29.1}, {"en-it": 58.0})
    assert published.relative_training_time is None


@pytest.mark.parametrize(
    ("corpus", "dropout", "size"),
    [("wmt16-ro-en", 0.2, 19_093), ("wmt18-tr-en", 0.3, 20_000),
     ("iwslt17-en-it", 0.3, 8_000)],
)  # fmt: skip
def test_dropout_everywhere_and_vocabulary(corpus, dropout, size):
    name = f"rosendahl2021/context/{corpus}"
    assert presets.get(name).options["vocabulary_size"] == size
    model = tiny.model(name)
    block = model.decoder_blocks[0]
    assert model.embeddings.dropout.rate == dropout
    assert block.feed_forward.dropout.rate == dropout
    assert block.self_attention.dropout_layer.rate == dropout
    assert block.cross_attention.dropout_layer.rate == dropout


def test_the_recurrence_is_in_every_cross_attention_and_nowhere_else():
    names = {v.replace("-", "_"): v for v in ADDED if v != "baseline"}
    assert set(names) == set(recurrences.RECURRENCES)
    for recurrence, variant in names.items():
        model = tiny.model(f"rosendahl2021/{variant}/wmt16-ro-en")
        blocks = (*model.encoder_blocks, *model.decoder_blocks)
        assert {type(b.self_attention) for b in blocks} == {DotProductAttention}
        for block in model.decoder_blocks:
            assert isinstance(block.cross_attention, RecurrentCrossAttention)
            expected = recurrences.RECURRENCES[recurrence]()
            assert block.cross_attention.recurrence == expected
            assert not block.cross_attention.use_bias
        assert model.encoder_norm is not None
        assert model.embeddings.softmax_bias


def test_attention_starts_with_the_variance_of_its_fan_in():
    block = tiny.model("rosendahl2021/context/wmt16-ro-en").decoder_blocks[0]
    for layer in (block.self_attention, block.cross_attention):
        for initializer in (layer.kernel_initializer, layer.output_initializer):
            config = initializer.get_config()
            found = [config[key] for key in ("scale", "mode", "distribution")]
            assert found == [1.0, "fan_in", "uniform"]


def test_both_rescaling_methods_have_the_tuned_values():
    energies = recurrences.get("accumulated_energies")
    assert (energies.rate, energies.radius) == (0.5, 5)
    assert recurrences.get("subtracted_weights").rate == 0.5
