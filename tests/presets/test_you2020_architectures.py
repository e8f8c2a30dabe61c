"""You et al. 2020: what stands in each sub-layer of the paper's architectures."""

import functools

import keras
import pytest

from keras_attnvariants import presets
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention

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
    with pytest.raises(ValueError, match=f"num_layers={layers - 1}. Received"):
        preset.build(**fewer)
