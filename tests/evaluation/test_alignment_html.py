"""Words from pieces, weights between words, and the HTML that shows them."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from keras_attnvariants.evaluation.alignment_html import Hypothesis
from keras_attnvariants.evaluation.alignment_html import alignment_html
from keras_attnvariants.evaluation.alignment_html import alignment_svg
from keras_attnvariants.evaluation.alignment_html import word_weights
from keras_attnvariants.evaluation.alignment_html import words


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
    assert page.text == "x yza b -0.50c -1.25"
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
        "div", "style", "p", "span", "ol", "li", "button",
    }  # fmt: skip
    assert page.text.count('<script>alert("1")</script>') == 2


def test_a_model_without_weights():
    found = [Hypothesis(["▁a"], -1.0, np.zeros((1, 2))), Hypothesis([], 0.0, zeros())]
    text = alignment_html(["▁x", "▁y"], found, "k2")
    assert ":has" not in text
    assert 'aria-label="a"' in text
    assert Page(alignment_html([], [], "k3")).text == ""


def zeros():
    return np.zeros((0, 2))


def test_a_picture_has_a_cell_for_each_pair_of_words():
    weights = np.array([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]])
    text = alignment_svg(["▁x", "▁y", "z"], Hypothesis(["▁a", "▁b"], -0.5, weights))
    page = Page(text)
    told = ["a to x: 90%", "a to yz: 10%", "b to x: 0%", "b to yz: 100%"]
    assert page.text.split() == " ".join(["x yz a", *told[:2], "b", *told[2:]]).split()
    shown = [float(a["fill-opacity"]) for _, a in page.tags if "fill-opacity" in a]
    assert shown == [0.9, 0.1, 0.0, 1.0]


def test_typed_text_is_never_markup_of_a_picture():
    bad = ['▁<script>alert("1")</script>', "▁\"'><img/src=x>", "▁</text>", "▁&amp;"]
    found = Hypothesis(bad, -1.0, np.full((4, 4), 0.25))
    page = Page(alignment_svg(bad, found))
    assert {tag for tag, _ in page.tags} == {"svg", "rect", "text", "title"}
    assert page.text.count('<script>alert("1")</script>') == 2 + 2 * 4
    assert found.text == " ".join(piece[1:] for piece in bad)
