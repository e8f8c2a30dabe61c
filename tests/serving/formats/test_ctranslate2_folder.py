"""Folders of CTranslate2: their translations, and what is refused."""

import keras
import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants.serving import export_ctranslate2
from keras_attnvariants.serving.precision import with_integers

ctranslate2 = pytest.importorskip("ctranslate2", reason="needs its extra")


def sharp_transformer(**options):
    """A Transformer with learned attention, and outputs that vary."""
    keras.utils.set_random_seed(3)
    attention = options.pop("attention", kav.DotProductAttention(2, use_bias=True))
    places = dict.fromkeys(("encoder_attention", "decoder_attention"), attention)
    places["cross_attention"] = kav.DotProductAttention(2, use_bias=True)
    given = {**places, "vocabulary_size": 100, "max_length": 64, **options}
    model = kav.Transformer(num_layers=2, hidden_dim=16, intermediate_dim=32, **given)
    for weight in model.weights:
        weight.assign(1.5 * weight + 0.01)
    return model


def check_translations(model, tokenizer, texts, folder):
    """Asserts that greedy search finds the same in CTranslate2 as here.

    Beam searches would differ at the maximum length, which these models reach:
    CTranslate2 cuts hypotheses off there, while here they must end with EOS.
    """
    export_ctranslate2(model, tokenizer, folder)
    found = ctranslate2.Translator(str(folder), compute_type="float32").translate_batch(
        tokenizer.split(texts),
        beam_size=1,
        max_decoding_length=19,
        suppress_sequences=[["<pad>"], ["<s>"]],
    )
    ours = kav.Translator(model, tokenizer, beam_size=1, max_length=20, xla=False)
    expected = ours.translate_nbest(texts, n_best=1, token_scores=True)
    for [best], result in zip(expected, found, strict=True):
        pieces = [tokenizer.pieces[n] for n in best.tokens[:-1]]
        assert result.hypotheses[0] == pieces


@pytest.mark.parametrize(
    "options",
    [
        {"normalization": "post", "activation": "silu", "softmax_bias": True},
        {"tie_embeddings": "none", "num_decoder_layers": 1, "embedding_scale": False},
        pytest.param({"activation": "gelu"}, marks=pytest.mark.slow),
        pytest.param({"tie_embeddings": "decoder"}, marks=pytest.mark.slow),
        pytest.param({"attention": kav.DotProductAttention(2)}, marks=pytest.mark.slow),
    ],
)
def test_translations_are_those_of_the_package(options, tokenizer, texts, tmp_path):
    model = sharp_transformer(**options)
    check_translations(model, tokenizer, texts[:12], tmp_path / "model")


def test_what_was_learned_beside_kernels_is_exported(tokenizer, texts, tmp_path):
    model = sharp_transformer()
    dense = model.encoder_blocks[0].self_attention.query_dense
    dense.enable_lora(2)
    dense.lora_kernel_b.assign(np.ones(dense.lora_kernel_b.shape))
    check_translations(model, tokenizer, texts[:4], tmp_path / "model")


REFUSED = {
    "encoder_0 self_attention is HardCodedAttention": {
        "attention": kav.HardCodedAttention(2, offsets=(-1, 0))
    },
    "decoder_1 cross_attention is left out": {
        "cross_attention": [kav.DotProductAttention(2), None]
    },
    "decoder_0 cross_attention has 4 heads": {
        "cross_attention": kav.DotProductAttention(4)
    },
    "encoder_1 feed_forward is left out": {"feed_forward": [True, False]},
    "ConcatenatedPositions": {
        "positions": kav.models.ConcatenatedPositions(4, max_length=64),
        "tie_embeddings": "none",
    },
    "'elu'": {"activation": "elu"},
}


@pytest.mark.parametrize(("found", "options"), REFUSED.items())
def test_what_ctranslate2_does_not_have(found, options, tokenizer, tmp_path):
    with pytest.raises(ValueError, match=f"CTranslate2 supp.*Received: .*{found}"):
        export_ctranslate2(sharp_transformer(**options), tokenizer, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_other_models_are_refused(models, tokenizer, tmp_path):
    with pytest.raises(ValueError, match="Received: Seq2SeqLSTM"):
        export_ctranslate2(models["lstm"], tokenizer, tmp_path / "model")
    model = with_integers(sharp_transformer(), "float32")
    with pytest.raises(ValueError, match="not quantized.*quantized to int8"):
        export_ctranslate2(model, tokenizer, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_weights_are_stored_as_integers(tokenizer, tmp_path):
    model, sizes = sharp_transformer(), {}
    for quantization in ("float32", "int8"):
        folder = tmp_path / quantization
        export_ctranslate2(model, tokenizer, folder, quantization=quantization)
        sizes[quantization] = (folder / "model.bin").stat().st_size
        translator = ctranslate2.Translator(str(folder))
        assert translator.translate_batch([["a"]], max_decoding_length=9)
    assert sizes["int8"] < sizes["float32"]
