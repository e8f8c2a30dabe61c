"""Translations with what they attend to, by a trained model."""

import re

import pytest

import keras_attnvariants as kav
from keras_attnvariants.evaluation import AlignedTranslator
from keras_attnvariants.evaluation.alignment_html import words
from tests.evaluation.test_alignment_html import Page

TEXT = "be la"


@pytest.fixture(scope="module")
def model(run_folder):
    return AlignedTranslator(*kav.training.load_run(run_folder), beam_size=4)


def test_a_sentence_is_translated(model):
    reading = model.translate(TEXT)
    assert "".join(reading.source).replace("▁", " ").strip() == TEXT
    assert not reading.is_cut and reading.seconds > 0
    translator = kav.Translator(model.model, model.tokenizer, 4, xla=False)
    [expected] = translator.translate_nbest([TEXT], 3)
    assert len(reading.hypotheses) == len(expected)
    for found, translation in zip(reading.hypotheses, expected, strict=True):
        pieces = "".join(found.pieces).replace("▁", " ").strip()
        assert pieces == translation.text.replace(" ⁇ ", "<unk>")
        assert found.score == pytest.approx(translation.score, abs=1e-5)
        assert found.weights.shape == (len(found.pieces), len(reading.source))
        assert found.weights.sum(axis=1) == pytest.approx(1.0, abs=1e-4)


def test_sentences_without_words_and_with_too_many(model):
    assert model.translate(" ").hypotheses == []
    reading = model.translate("be la " * 40)
    assert reading.is_cut
    assert len(reading.source) == model.model.max_length


def test_a_translation_shows_itself(model):
    found = model.translate(TEXT)
    first, second = found._repr_html_(), found._repr_html_()
    page = Page(first)
    best = found.hypotheses[0]
    assert TEXT in page.text and best.text in page.text
    assert first != second  # two on one page do not answer for each other
    assert Page(model.translate(" ")._repr_html_()).text.strip() == ""


def test_a_translation_is_drawn(model):
    found = model.translate(TEXT)
    page = Page(found.svg)
    titles = [tag for tag, _ in page.tags if tag == "title"]
    translated = words(found.hypotheses[0].pieces).texts
    assert len(titles) == len(TEXT.split()) * len(translated)
    for word, told in zip(translated, found.told, strict=True):
        assert re.fullmatch(rf"{re.escape(word)}: (be|la) \d+%(, (be|la) \d+%)?", told)
