"""You et al. 2020: the layer in each sub-layer, and the figures of the tables."""

import functools

import keras
import pytest

from keras_attnvariants import presets
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import HardCodedCrossAttention

TINY = {
    "vocabulary_size": 20,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "num_layers": 3,
}


@functools.cache
def tiny(variant, **overrides):
    """A tiny model; tests must not change it."""
    return presets.get(f"you2020/{variant}/iwslt16").build(**{**TINY, **overrides})


def largest_entry(weight):
    return float(keras.ops.max(keras.ops.abs(weight)))


@pytest.mark.parametrize("variant", ["hc-sa", "hc-all", "sh-x", "conv", "index"])
def test_hard_coded_self_attention(variant):
    model = tiny(variant)
    implementation = variant if variant in ("conv", "index") else "gaussian"
    for block, offsets in zip(
        (*model.encoder_blocks, *model.decoder_blocks),
        [(-1, 1, -1, 1)] * 3 + [(-1, 0, -1, 0)] * 3,
        strict=True,
    ):
        layer = block.self_attention
        assert isinstance(layer, HardCodedAttention)
        assert layer.offsets == offsets
        assert layer.implementation == implementation
        assert layer.window == 3
        assert layer.standard_deviation == 1.0


def test_sh_x_has_one_head_as_wide_as_the_model_in_the_last_layer():
    crosses = [block.cross_attention for block in tiny("sh-x").decoder_blocks]
    assert crosses[:-1] == [None, None]
    assert isinstance(crosses[-1], DotProductAttention)
    assert crosses[-1].num_heads == 1
    assert crosses[-1].head_dim == 16
    assert crosses[-1].scale == 16**-0.5


@pytest.mark.parametrize("variant", ["base-no-sa", "sh-x-no-sa"])
def test_no_sa_has_no_self_attention(variant):
    model = tiny(variant)
    blocks = (*model.encoder_blocks, *model.decoder_blocks)
    assert all(block.self_attention is None for block in blocks)
    assert model.decoder_blocks[-1].cross_attention is not None


@pytest.mark.parametrize("variant", ["base", "hc-sa", "hc-all", "sh-x"])
def test_no_ff_has_no_feed_forward_anywhere(variant):
    model = tiny(f"{variant}-no-ff")
    blocks = (*model.encoder_blocks, *model.decoder_blocks)
    assert all(block.feed_forward is None for block in blocks)
    assert all(block.self_attention is not None for block in blocks)


def test_table_6_changes_the_offsets_of_the_outer_layers_only():
    model = tiny("hc-sa-ll-cc", num_layers=4)
    encoder = [b.self_attention.offsets[:2] for b in model.encoder_blocks]
    decoder = [b.self_attention.offsets[:2] for b in model.decoder_blocks]
    assert encoder == [(-1, -1), (-1, 1), (-1, 1), (-1, -1)]
    assert decoder == [(0, 0), (-1, 0), (-1, 0), (0, 0)]


def test_dropout_on_embeddings_and_outputs_of_sublayers_only():
    model = tiny("base")
    block = model.decoder_blocks[0]
    assert model.embeddings.dropout.rate == 0.1
    assert block.self_residual.dropout.rate == 0.1
    assert block.feed_forward.dropout.rate == 0.0
    assert block.cross_attention.dropout_layer.rate == 0.0


def test_initial_weights_of_learned_attention_are_those_of_a_stacked_matrix():
    keras.utils.set_random_seed(3)
    width = 96
    model = tiny("base", hidden_dim=width, num_layers=1)
    layer = model.encoder_blocks[0].self_attention
    stacked, glorot = (6 / (4 * width)) ** 0.5, (6 / (2 * width)) ** 0.5
    for dense, bound in [
        (layer.query_dense, stacked),
        (layer.key_dense, stacked),
        (layer.value_dense, stacked),
        (layer.output_dense, glorot),
    ]:
        largest = largest_entry(dense.kernel)
        assert 0.99 * bound < largest <= bound
    hard_coded = tiny("hc-sa", hidden_dim=width, num_layers=1)
    value = hard_coded.encoder_blocks[0].self_attention.value_dense.kernel
    assert 0.99 * glorot < largest_entry(value) <= glorot


@pytest.mark.parametrize("heads", [2, 3, 4])
def test_more_cross_attention_heads_in_the_last_layer(heads):
    name = f"you2020/sh-x-{heads}-heads/small-wmt16"
    model = presets.get(name).build(**{**TINY, "hidden_dim": 24})
    crosses = [block.cross_attention for block in model.decoder_blocks]
    assert crosses[:-1] == [None, None]
    assert (crosses[-1].num_heads, crosses[-1].head_dim) == (heads, 24 // heads)


@pytest.mark.parametrize("layers", [2, 3, 4, 5])
def test_one_cross_attention_head_in_more_of_the_last_layers(layers):
    preset = presets.get(f"you2020/sh-x-{layers}-layers/small-wmt16")
    model = preset.build(**{**TINY, "num_layers": 5})
    crosses = [block.cross_attention for block in model.decoder_blocks]
    assert crosses[: 5 - layers] == [None] * (5 - layers)
    assert [cross.num_heads for cross in crosses[5 - layers :]] == [1] * layers
    assert "Figure 7" in preset.notes
    assert preset.published == presets.PublishedFigures()
    fewer = {**TINY, "num_layers": layers - 1}
    with pytest.raises(ValueError, match=f"each of {layers - 1} layers. Received"):
        preset.build(**fewer)


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
    # The old name is still understood.
    assert presets.get("you2020/sh-x/wmt16").name == "you2020/sh-x/wmt16-en-ro"


def test_rows_without_a_score_say_so():
    for preset in presets.list(paper="you2020"):
        excuses = ("prints no score", "Figure 7")
        says_so = any(excuse in preset.notes for excuse in excuses)
        assert says_so != bool(preset.published.bleu), preset.name
