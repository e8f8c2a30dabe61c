"""Translations by a trained model, words from pieces, and the HTML that shows them."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants.evaluation import AlignedTranslator
from keras_attnvariants.evaluation.aligned_translations import Hypothesis
from keras_attnvariants.evaluation.aligned_translations import alignment_html
from keras_attnvariants.evaluation.aligned_translations import word_weights
from keras_attnvariants.evaluation.aligned_translations import words

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
        assert pieces == translation.text.replace(" ⁇ ", "<unk>").strip()
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
    assert first != second  # two on one page do not interfere
    assert Page(model.translate(" ")._repr_html_()).text.strip() == ""


def test_each_word_is_described_with_what_it_attends_to(model):
    found = model.translate(TEXT)
    translated = words(found.hypotheses[0].pieces).texts
    for word, text in zip(translated, found.descriptions, strict=True):
        assert re.fullmatch(rf"{re.escape(word)}: (be|la) \d+%(, (be|la) \d+%)?", text)
    assert model.translate(" ").descriptions == []


@pytest.mark.parametrize(
    ("pieces", "texts", "spaced", "numbers"),
    [
        ("▁Ein ▁Ha us .", ["Ein", "Haus", "."], "110", [0, 1, 1, 2]),
        ("▁B är 2 - a", ["Bär2", "-", "a"], "100", [0, 0, 0, 1, 2]),
        ("▁ 私 は ▁A", ["私", "は", "A"], "101", [0, 0, 1, 2]),
        ("<unk> x", ["<unk>", "x"], "00", [0, 1]),
        ("", [], "", []),
    ],
)
def test_pieces_are_joined_to_words(pieces, texts, spaced, numbers):
    found = words(pieces.split())
    assert found.texts == texts
    assert found.spaced == [mark == "1" for mark in spaced]
    assert found.numbers == numbers


def test_weights_of_words_sum_over_sources_and_average_over_targets():
    weights = np.array([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5], [0.2, 0.2, 0.6]])
    target, source = words(["▁a", "b", "▁c"]), words(["▁d", "▁e", "f"])
    expected = [[0.25, 0.75], [0.2, 0.8]]
    np.testing.assert_allclose(word_weights(weights, target, source), expected)


class Page(HTMLParser):
    """Checks that tags are closed in order; keeps tags, attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] != "style":
            self.text += data


def test_a_page_of_two_translations():
    weights = np.array([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]])
    hypotheses = [
        Hypothesis(["▁a", "▁b"], -0.5, weights),
        Hypothesis(["▁c"], -1.25, weights[:1]),
    ]
    text = alignment_html(["▁x", "▁y", "z"], hypotheses, "k7")
    page = Page(text)
    assert page.text == "x yza b -0.50c -1.25" + "xyz" + "ab"
    cells = [attributes for tag, attributes in page.tags if tag == "td"]
    assert [(cell["style"], cell["title"]) for cell in cells] == [
        ("--weight: 0.90", "90%"),
        ("--weight: 0.10", "10%"),
        ("--weight: 0.00", "0%"),
        ("--weight: 1.00", "100%"),
    ]
    buttons = [attributes for tag, attributes in page.tags if tag == "button"]
    assert [button["data-t"] for button in buttons] == ["0-0", "0-1", "1-0"]
    assert [button["aria-label"] for button in buttons] == [
        "a: x 90%, yz 10%",
        "b: yz 100%",
        "c: x 90%, yz 10%",
    ]
    rules = re.findall(r'data-t="(.*?)".*?data-s="(.*?)"\] { --weight: (.*?) }', text)
    assert rules == [
        ("0-0", "0", "1.00"),
        ("0-0", "1", "0.11"),
        ("0-1", "1", "1.00"),
        ("1-0", "0", "1.00"),
        ("1-0", "1", "0.11"),
    ]
    assert text.count("#k7:has(") == len(rules)


def test_typed_text_is_never_markup():
    bad = ['▁<script>alert("1")</script>', "▁\"'><img/src=x>", "▁</style>", "▁&amp;"]
    weights = np.full((4, 4), 0.25)
    page = Page(alignment_html(bad, [Hypothesis(bad, -1.0, weights)], "k1"))
    assert {tag for tag, _ in page.tags} == {
        *("div", "style", "p", "span", "ol", "li", "button"),
        *("table", "thead", "tr", "th", "td"),
    }
    assert page.text.count('<script>alert("1")</script>') == 4


def test_a_model_without_weights():
    found = [Hypothesis(["▁a"], -1.0, np.zeros((1, 2))), Hypothesis([], 0.0, zeros())]
    text = alignment_html(["▁x", "▁y"], found, "k2")
    assert ":has" not in text and "<table" not in text
    assert 'aria-label="a"' in text
    assert Page(alignment_html([], [], "k3")).text == ""


def zeros():
    return np.zeros((0, 2))
