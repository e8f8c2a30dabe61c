"""Chen, Ling and Rivera 2019: parameter counts, figures, and the models."""

import functools
import math

import pytest

from keras_attnvariants import presets
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.models import ConcatenatedPositions
from keras_attnvariants.models import Seq2SeqLSTM
from keras_attnvariants.models import Transformer
from keras_attnvariants.presets.counting import count_parameters

NAMES = [name for name in presets.names() if name.startswith("cs287/")]
TINY = {"vocabulary_size": 20, "hidden_dim": 14}
TINY_TRANSFORMER = {**TINY, "intermediate_dim": 9, "position_dim": 5}


def get(model):
    return presets.get(f"cs287/{model}/iwslt16-de-en")


@functools.cache
def tiny(model):
    """A tiny model; tests must not change it."""
    sizes = TINY if "seq2seq" in model else TINY_TRANSFORMER
    return get(model).build(**sizes)


def test_four_presets_that_can_be_cut_short():
    assert [name.split("/")[1] for name in NAMES] == [
        "seq2seq",
        "seq2seq-attn",
        "megatron",
        "soundwave",
    ]
    assert presets.get("cs287/seq2seq/iwslt16") is get("seq2seq")


@pytest.mark.parametrize(
    ("model", "count"), [("seq2seq", 3_819_660), ("seq2seq-attn", 5_376_460)]
)
def test_parameters_of_the_recurrent_models(model, count):
    assert get(model).parameters == count


@pytest.mark.parametrize(
    ("model", "millions"), [("megatron", 10.19), ("soundwave", 11.32)]
)
def test_parameters_of_the_transformers(model, millions):
    assert round(get(model).parameters / 1e6, 2) == millions


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", [None, 31])
def test_the_count_is_that_of_a_built_model(name, source):
    preset = presets.get(name)
    sizes = TINY if preset.model is Seq2SeqLSTM else TINY_TRANSFORMER
    sizes = {**sizes, "source_vocabulary_size": source}
    config = preset.architecture(**{**preset.options, **sizes})
    count = count_parameters(preset.model, config)
    assert count == preset.build(**sizes).count_params()


@pytest.mark.parametrize("name", NAMES)
def test_perplexity_is_the_exponential_of_the_loss(name):
    figures = presets.get(name).published
    # Loss and perplexity of the Transformers are printed with two digits.
    assert math.exp(figures.loss) == pytest.approx(figures.perplexity, rel=0.03)
    assert set(figures.bleu) == {"de-en"}


def test_figures_of_the_report():
    figures = get("seq2seq-attn").published
    assert (figures.loss, figures.perplexity) == (2.71, 15.05)
    bleu = [get(name.split("/")[1]).published.bleu["de-en"] for name in NAMES]
    assert bleu == [6.32, 17.77, 9.68, 7.08]


def test_training():
    training = get("soundwave").training
    assert (training.batch_sentences, training.epochs) == (32, 10)
    assert (training.beta_1, training.beta_2, training.epsilon) == (0.9, 0.999, 1e-8)
    assert (training.beam_size, training.length_penalty) == (3, 0.0)
    assert training.label_smoothing == 0.0


def test_recurrent_models():
    plain, attentive = tiny("seq2seq"), tiny("seq2seq-attn")
    assert type(plain) is type(attentive) is Seq2SeqLSTM
    assert (plain.encoder.units, plain.decoder.units) == (14, 14)
    assert (attentive.encoder.units, attentive.decoder.units) == (7, 14)
    assert (plain.decoder.attention, attentive.decoder.attention) == (False, True)
    assert plain.embedding_dim == attentive.embedding_dim == 100
    assert attentive.mask_padding
    assert not get("seq2seq-attn").build(**TINY, mask_padding=False).mask_padding


@pytest.mark.parametrize(
    ("name", "layers", "heads", "key_dim", "dropout"),
    [("megatron", 3, 4, 50, 0.2), ("soundwave", 4, 3, 67, 0.1)],
)
def test_transformers(name, layers, heads, key_dim, dropout):
    preset = get(name)
    config = preset.config["cross_attention"]["config"]
    assert (config["num_heads"], config["key_dim"]) == (heads, key_dim)
    model = tiny(name)
    assert type(model) is Transformer
    assert len(model.encoder_blocks) == len(model.decoder_blocks) == layers
    attention = model.decoder_blocks[0].cross_attention
    assert type(attention) is DotProductAttention
    assert attention.head_dim == -(-14 // heads)
    assert attention.scale == attention.head_dim**-0.5
    assert attention.use_bias
    assert attention.dropout == dropout
    assert model.embeddings.dropout.rate == dropout
    assert model.encoder_norm is not None
    assert not model.embeddings.tied
    assert model.embeddings.scale == 1.0


def test_positions_take_a_part_of_the_width():
    model = tiny("megatron")
    positions = model.embeddings.positions
    assert type(positions) is ConcatenatedPositions
    assert (positions.position_dim, positions.max_position) == (5, 20)
    assert model.embeddings.target.output_dim == 9
    options = get("megatron").options
    assert options["hidden_dim"] - options["position_dim"] == 180


def test_one_vocabulary_if_its_size_is_given_and_two_if_not():
    preset = get("megatron")
    sizes = {name: TINY_TRANSFORMER[name] for name in ("hidden_dim", "position_dim")}
    joint = preset.build(50, **sizes)
    assert joint.vocabulary_size == joint.source_vocabulary_size == 50
    both = preset.build(50, source_vocabulary_size=60, **sizes)
    assert (both.vocabulary_size, both.source_vocabulary_size) == (50, 60)
    published = get("seq2seq").build()
    assert published.vocabulary_size == 11_560
    assert published.source_vocabulary_size == 13_353
