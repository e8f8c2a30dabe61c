"""You et al. 2020: parameter counts, figures and settings."""

import functools

import pytest

from keras_attnvariants import presets
from keras_attnvariants.attention import HardCodedCrossAttention

TINY = {
    "vocabulary_size": 20,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "num_layers": 3,
}
COUNTS = {  # millions, with a vocabulary of 32,000
    "iwslt16-en-de": {
        "base": 17.14,
        "hc-sa": 15.48,
        "hc-all": 14.65,
        "sh-x": 14.15,
        "base-no-sa": 13.81,
        "sh-x-no-sa": 12.48,
        "base-no-ff": 14.20,
        "hc-sa-no-ff": 12.54,
        "conv": 15.48,
        "index": 15.48,
    },
    "wmt14-en-de": {
        "base": 60.49,
        "hc-sa": 54.19,
        "hc-all": 51.05,
        "sh-x": 48.95,
        "base-no-sa": 47.89,
        "sh-x-no-sa": 42.64,
    },
}


@functools.cache
def tiny(variant, **overrides):
    """A tiny model; tests must not change it."""
    return presets.get(f"you2020/{variant}/iwslt16").build(**{**TINY, **overrides})


@pytest.mark.parametrize(
    ("corpus", "variant"), [(c, v) for c, counts in COUNTS.items() for v in counts]
)
def test_parameters_in_millions(corpus, variant):
    preset = presets.get(f"you2020/{variant}/{corpus}")
    assert round(preset.parameters / 1e6, 2) == COUNTS[corpus][variant]


@pytest.mark.parametrize(
    ("variant", "count"),
    [("base", 7_919_310), ("hc-sa", 6_260_430), ("hc-all", 5_430_990)],
)
def test_parameters_without_embeddings(variant, count):
    preset = presets.get(f"you2020/{variant}/iwslt16")
    assert preset.parameters - 32_000 * 288 == count


def test_figures_of_the_paper():
    preset = presets.get("you2020/hc-sa/iwslt16")
    assert preset.published.bleu == {"en-de": 30.3, "de-en": 34.8}
    assert preset.published.sentences_per_second == 44.0
    assert preset.published.max_batch_tokens == 15_100
    assert presets.get("you2020/sh-x/wmt14-en-fr").published.bleu == {"en-fr": 37.1}
    assert presets.get("you2020/hc-all/iwslt17").published.bleu["ja-en"] == 6.1
    assert presets.get("you2020/base/-sa/wmt16").published.bleu == {"en-ro": 27.0}
    assert presets.get("you2020/index/wmt16").published.bleu == {"en-ro": 31.4}
    assert presets.get("you2020/hc-sa-ll-cc/iwslt16").published.bleu == {"en-de": 27.8}
    assert presets.get("you2020/base/-ff/wmt16").published.bleu == {}


def test_training_of_both_sizes():
    small = presets.get("you2020/hc-sa/iwslt17").training
    large = presets.get("you2020/hc-sa/wmt16").training
    assert (small.batch_tokens, large.batch_tokens) == (6000, 50_800)
    assert (small.label_smoothing, large.label_smoothing) == (0.0, 0.1)
    assert (small.averaged_checkpoints, large.averaged_checkpoints) == (1, 5)
    assert (small.beta_1, small.beta_2, small.epsilon) == (0.9, 0.98, 1e-9)
    assert (small.beam_size, small.length_penalty, small.extra_length) == (4, 0.6, 50)
    assert "SentencePiece" in small.vocabulary
    assert "BPE" in large.vocabulary


def test_hc_all_has_hard_coded_cross_attention_with_the_ratio_of_the_corpus():
    layer = tiny("hc-all").decoder_blocks[1].cross_attention
    assert isinstance(layer, HardCodedCrossAttention)
    assert layer.offsets == (-1, 1, -1, 1)
    assert layer.length_ratio == pytest.approx(1.007, abs=5e-4)
    assert layer.floor
    assert (
        tiny("hc-all", length_ratio=0.5).decoder_blocks[0].cross_attention.length_ratio
        == 0.5
    )
    options = presets.get("you2020/hc-all/iwslt17").options
    assert options["length_ratio"] == pytest.approx(1.431, abs=5e-4)


def test_post_normalisation_one_embedding_matrix_and_no_biases_in_attention():
    model = tiny("base")
    assert model.encoder_norm is None
    assert model.decoder_norm is None
    paths = [weight.path for weight in model.weights]
    assert sum("embedding" in path for path in paths) == 1
    assert not [p for p in paths if "attention" in p and "bias" in p]


def test_figure_7_has_small_models_on_a_large_corpus():
    small = presets.get("you2020/sh-x/small-wmt16-en-ro")
    other = presets.get("you2020/sh-x/iwslt16")
    sizes = ("num_layers", "hidden_dim", "intermediate_dim", "num_heads")
    assert all(small.options[size] == other.options[size] for size in sizes)
    assert small.parameters == other.parameters
    # The name that always was, is still understood.
    assert presets.get("you2020/sh-x/wmt16").name == "you2020/sh-x/wmt16-en-ro"


def test_rows_without_a_score_say_so():
    for preset in presets.list(paper="you2020"):
        excuses = ("prints no score", "Figure 7")
        says_so = any(excuse in preset.notes for excuse in excuses)
        assert says_so != bool(preset.published.bleu), preset.name
