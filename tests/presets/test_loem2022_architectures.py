"""Loem et al. 2022: what takes the place of self-attention, layer by layer."""

import pytest

from keras_attnvariants import presets
from keras_attnvariants.attention import ConcatenatedNgram
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import LocalAttention
from keras_attnvariants.attention import NeuralNgram
from keras_attnvariants.models import Transformer
from keras_attnvariants.models import lowest
from tests.presets import tiny

NGRAM, SELF = NeuralNgram, DotProductAttention


def wmt(row):
    return presets.get(f"loem2022/{row}/wmt16-en-de")


def stacks(row):
    model = tiny.model(f"loem2022/{row}/wmt16-en-de")
    return tuple(
        [block.self_attention for block in blocks]
        for blocks in (model.encoder_blocks, model.decoder_blocks)
    )


def test_neural_ngrams_of_the_published_size_see_n_vectors_on_both_sides():
    encoder, decoder = stacks("neural-ngram")
    assert {layer.reach for layer in encoder} == {(2, 2)}
    assert {layer.reach for layer in decoder} == {(4, 0)}
    for layer in (*encoder, *decoder):
        assert isinstance(layer, NGRAM)
        assert not layer.output_projection
        assert layer.global_context == (not layer.causal)
    for layer in sum(stacks("neural-ngram-no-global"), []):
        assert not layer.global_context


def test_neural_ngrams_as_written():
    encoder, decoder = stacks("neural-ngram-as-written")
    assert {layer.reach for layer in encoder} == {(4, 4)}
    assert {layer.reach for layer in decoder} == {(4, 0)}
    assert all(layer.output_projection for layer in (*encoder, *decoder))


def test_the_single_head_is_as_wide_as_the_model():
    for layer in sum(stacks("neural-ngram-single-head"), []):
        assert (layer.num_heads, layer.head_dim) == (1, tiny.SIZES["hidden_dim"])
    cross = tiny.model("loem2022/neural-ngram-single-head/wmt16-en-de")
    assert cross.decoder_blocks[0].cross_attention.num_heads == 8


def test_windows_that_grow():
    config = wmt("neural-ngram-growing").config
    encoder, decoder = (
        [layer["config"]["n"] for layer in config[f"{side}_attention"]]
        for side in ("encoder", "decoder")
    )
    assert decoder == [3, 3, 5, 5, 7, 7, 9, 9]
    assert [2 * n - 1 for n in encoder] == decoder
    shallow = tiny.config("loem2022/neural-ngram-growing/wmt16-en-de")
    assert [e["config"]["n"] for e in shallow["decoder_attention"]] == [3, 7]


def test_local_attention_sees_the_positions_of_an_ngram_as_written():
    for layer in sum(stacks("local-attention"), []):
        assert isinstance(layer, LocalAttention)
        assert layer.n == 5
        assert layer.use_bias


def test_a_concatenation_in_the_first_layer_is_its_feed_forward_too():
    model = tiny.model("loem2022/concatenated-ngram/wmt16-en-de")
    for blocks in (model.encoder_blocks, model.decoder_blocks):
        first, *others = blocks
        assert isinstance(first.self_attention, ConcatenatedNgram)
        assert first.feed_forward is None
        assert [block.self_attention for block in others] == [None] * len(others)
        assert all(block.feed_forward is not None for block in others)


def test_ngrams_on_one_side():
    for row, kinds, depths in [
        ("encoder-ngram", (NGRAM, SELF), (8, 6)),
        ("decoder-ngram", (SELF, NGRAM), (6, 8)),
    ]:
        options = wmt(row).options
        assert (options["num_layers"], options["num_decoder_layers"]) == depths
        for stack, kind in zip(stacks(row), kinds, strict=True):
            assert {type(layer) for layer in stack} == {kind}


@pytest.mark.parametrize("count", range(1, 7))
def test_ngrams_in_the_lowest_layers(count):
    for stack in stacks(f"lowest-{count}-ngram"):
        assert [type(layer) for layer in stack] == [NGRAM] * count + [SELF] * (
            6 - count
        )
        assert not stack[0].global_context


def test_a_hybrid_made_in_python_is_that_of_the_preset():
    def ngram(**options):
        options |= {"global_context": False, "output_projection": False}
        return NeuralNgram(num_heads=8, **options)

    learned = DotProductAttention(num_heads=8, use_bias=True)
    sizes = {key: tiny.SIZES[key] for key in ("hidden_dim", "intermediate_dim")}
    model = Transformer(
        vocabulary_size=11,
        num_layers=6,
        **sizes,
        encoder_attention=lowest(3, ngram(n=3), rest=learned, num_layers=6),
        decoder_attention=lowest(
            3, ngram(n=5, causal=True), rest=learned, num_layers=6
        ),
        cross_attention=learned,
        normalization="post",
        max_length=16,
    )
    preset = tiny.model("loem2022/lowest-3-ngram/wmt16-en-de")
    ours, theirs = (tiny.without_names(each.get_config()) for each in (model, preset))
    assert ours == theirs
