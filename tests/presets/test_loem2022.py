"""Loem et al. 2022: the layer in each sub-layer, and the figures of the tables."""

import pytest

from keras_attnvariants import presets
from keras_attnvariants.attention import ConcatenatedNgram
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import LocalAttention
from keras_attnvariants.attention import NeuralNgram
from keras_attnvariants.models import Transformer
from keras_attnvariants.presets.counting import count_parameters
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
        encoder_attention=[ngram(n=3)] * 3 + [learned] * 3,
        decoder_attention=[ngram(n=5, causal=True)] * 3 + [learned] * 3,
        cross_attention=learned,
        normalization="post",
        max_length=16,
    )
    preset = tiny.model("loem2022/lowest-3-ngram/wmt16-en-de")
    ours, theirs = (tiny.without_names(each.get_config()) for each in (model, preset))
    assert ours == theirs


def with_biases(value):
    """A configuration whose n-grams have biases, as its attention does."""
    if isinstance(value, list):
        return [with_biases(entry) for entry in value]
    if isinstance(value, dict) and value.get("class_name", "").endswith("NeuralNgram"):
        return {**value, "config": {**value["config"], "use_bias": True}}
    if isinstance(value, dict):
        return {key: with_biases(entry) for key, entry in value.items()}
    return value


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("self-attention/wmt16-en-de", 60.92),
        ("self-attention/iwslt14-de-en", 36.66),
        ("neural-ngram/wmt16-en-de", 61.71),
        ("neural-ngram/iwslt14-de-en", 36.78),
        ("neural-ngram-no-global/wmt16-en-de", 61.45),
        ("neural-ngram-growing/wmt16-en-de", 61.97),
        ("neural-ngram-depth-6/wmt16-en-de", 50.48),
        ("neural-ngram-as-written/wmt16-en-de", 66.96),
        ("neural-ngram-as-written/iwslt14-de-en", 42.68),
    ],
)
def test_parameters_in_millions_with_biases_everywhere(name, millions):
    preset = presets.get(f"loem2022/{name}")
    assert (
        round(count_parameters(preset.model, with_biases(preset.config)) / 1e6, 2)
        == millions
    )
    # The equations of n-grams have none, which makes next to no difference.
    assert preset.parameters / 1e6 == pytest.approx(millions, abs=0.02)


def test_figures_of_the_paper():
    published = wmt("self-attention").published
    assert (published.bleu, published.dev_bleu) == ({"en-de": 27.2}, {"en-de": 26.02})
    assert published.parameters == 61_000_000
    assert wmt("neural-ngram").published.dev_bleu == {"en-de": 26.00}
    assert wmt("decoder-ngram").published.dev_bleu == {"en-de": 26.46}
    assert wmt("encoder-ngram").published.dev_bleu == {"en-de": 25.95}
    assert wmt("lowest-3-ngram").published.dev_bleu == {"en-de": 26.52}
    assert wmt("lowest-2-ngram").published.dev_bleu == {}
    iwslt = presets.get("loem2022/local-attention/iwslt14").published
    assert iwslt.bleu == {"de-en": 34.77}
    articles = presets.get("loem2022/neural-ngram/cnn-dailymail")
    assert articles.options["max_length"] == 1024
    summaries = articles.published
    assert summaries.rouge == {"rouge-1": 39.04, "rouge-2": 17.38, "rouge-l": 36.01}
    assert summaries.bleu == {}


def test_training():
    small, large = presets.get("loem2022/neural-ngram/iwslt14"), wmt("neural-ngram")
    assert (small.training.beam_size, large.training.beam_size) == (5, 4)
    assert (small.options["dropout"], large.options["dropout"]) == (0.3, 0.1)
    assert small.options["intermediate_dim"] == 1024
    assert (small.options["num_layers"], large.options["num_layers"]) == (9, 8)
    assert large.training.schedule["config"]["warmup_steps"] == 4000


@pytest.mark.parametrize(
    ("name", "millions", "wer"),
    [
        ("self-attention", 52.29, [3.58, 8.86, 4.06, 8.67]),
        ("local-attention", 52.29, [5.91, 10.02, 6.43, 10.46]),
        ("neural-ngram", 53.08, [3.27, 8.83, 3.52, 8.70]),
    ],
)
def test_models_of_speech(name, millions, wer):
    preset = presets.get(f"loem2022/{name}/librispeech")
    assert preset.task == "speech"
    assert round(preset.parameters / 1e6, 2) == millions
    assert list(preset.published.wer.values()) == wer
    assert preset.published.parameters == 52_000_000
    assert ("53.08M" in preset.notes) == (name == "neural-ngram")
    front_end = preset.config["source_embedding"]
    assert front_end["config"] == {"hidden_dim": 512, "kernel_size": 5}
    sets = ["dev-clean", "dev-other", "test-clean", "test-other"]
    assert list(preset.published.wer) == sets
    assert "test-other 8.67" in repr(presets.list("self-attention/librispeech"))
