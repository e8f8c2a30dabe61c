"""The pictures of every variant, drawn from runs of tiny models."""

import importlib
import sys

import numpy as np
import pytest
from PIL import Image

import keras_attnvariants as kav
from tests.docs import pages

MODULES = ("pictures",)

LEARNED = kav.DotProductAttention(num_heads=2)
# Layers in encoder, decoder and cross-attention.
RUNS = {
    "base": (LEARNED, LEARNED, LEARNED),
    "hc-sa": (
        kav.HardCodedAttention(num_heads=2, offsets=(-1, 1)),
        kav.HardCodedAttention(num_heads=2, offsets=(-1, 0)),
        LEARNED,
    ),
    "hc-all": (None, None, kav.HardCodedCrossAttention(num_heads=2)),
    "recurrent": (None, None, kav.RecurrentCrossAttention(num_heads=2)),
    "phrase": (
        None,
        None,
        kav.PhraseAttention(num_heads=2, structure=kav.Interleaved()),
    ),
    "neural-ngram": (
        kav.NeuralNgram(num_heads=2),
        kav.NeuralNgram(num_heads=2, causal=True),
        LEARNED,
    ),
    "concatenated": (
        [kav.ConcatenatedNgram(hidden_dim=8, far_size=2), None],
        None,
        LEARNED,
    ),
    "local-attention": (
        kav.LocalAttention(num_heads=2),
        kav.LocalAttention(num_heads=2),
        LEARNED,
    ),
    "linear": (
        kav.LinearAttention(num_heads=2),
        kav.LinearAttention(num_heads=2),
        LEARNED,
    ),
}
NUMBER_OF_PANELS = {
    "dot_product": 3,
    "hard_coded": 4,
    "hard_coded_cross": 2,
    "recurrent_cross": 2,
    "phrase": 4,
    "neural_ngram": 2,
    "concatenated_ngram": 1,
    "local_attention": 2,
    "linear": 2,
    "seq2seq_lstm": 1,
}


@pytest.fixture(scope="module")
def pictures():
    """The script as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(pages.DOCS))
        yield importlib.import_module("pictures")
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def runs(pictures, tmp_path_factory):
    """A folder of runs, one of which has been trained to its end."""
    folder = tmp_path_factory.mktemp("runs")
    words = f"{pictures.SOURCE} {pictures.TARGET}".split()
    more = pages.README.read_text("utf-8").split()
    tokenizer = kav.Tokenizer.train(words * 50 + more, 300)
    for name, places in RUNS.items():
        model = kav.Transformer(tokenizer.vocabulary_size, 2, 8, 8, *places)
        kav.save_model(model, folder / name / "best", tokenizer)
    kav.save_model(model, folder / name / "averaged", tokenizer)
    recurrent = kav.Seq2SeqLSTM(tokenizer.vocabulary_size, 8, 8, max_length=64)
    kav.save_model(recurrent, folder / "lstm" / "best", tokenizer)
    return folder


@pytest.mark.slow
def test_every_variant_is_drawn(pictures, runs, tmp_path, capsys):
    pictures.main(runs, tmp_path / "drawn")
    said = capsys.readouterr().out
    assert f"{list(RUNS)[-1]}/averaged" in said and "base/best" in said
    drawn = {path.stem: path for path in (tmp_path / "drawn").glob("*.png")}
    assert set(drawn) == set(pictures.PICTURES) == set(NUMBER_OF_PANELS)
    for path in drawn.values():
        assert path.stat().st_size < 40_000
        with Image.open(path) as image:
            assert max(image.size) < 1800  # these tokens are short, and many
            assert len(np.unique(np.asarray(image.convert("L")))) > 20


def test_panels_show_what_they_say(pictures, runs):
    for name, picture in pictures.PICTURES.items():
        folder = pictures.run_of(picture, runs)
        panels = picture.panels(pictures.AttentionExample(folder, picture.layer))
        assert len(panels) == NUMBER_OF_PANELS[name], name
        for panel in panels:
            assert panel.weights.shape == (len(panel.rows), len(panel.columns))
            assert panel.weights.min() >= 0 and panel.weights.max() > 0


def test_the_effect_of_neighbours_ends_with_the_window(pictures, runs):
    picture = pictures.PICTURES["neural_ngram"]
    example = pictures.AttentionExample(runs / picture.run / "best", picture.layer)
    encoder, decoder = (panel.weights for panel in picture.panels(example))
    assert not np.triu(decoder, 1).any()
    assert not np.tril(decoder, -5).any()
    assert np.triu(encoder, 5).any()  # by way of the maximum
    np.testing.assert_allclose(decoder.max(-1), 1.0, atol=1e-5)


def test_a_variant_without_a_run_is_passed_over(pictures, tmp_path, capsys):
    (tmp_path / "runs").mkdir()
    pictures.main(tmp_path / "runs", tmp_path / "drawn", only="phrase")
    assert capsys.readouterr().out.startswith("phrase: no run with PhraseAttention")
    assert not (tmp_path / "drawn").exists()


def test_every_page_has_its_picture(pictures):
    stems = {page.stem for page in (pages.DOCS / "variants").glob("*.md")}
    # The picture of distance biases needs no trained model, and has its own script.
    assert {*pictures.PICTURES, "distance_biases"} == stems
    for stem in stems:
        assert (pages.DOCS / "pictures" / f"{stem}.png").is_file()
