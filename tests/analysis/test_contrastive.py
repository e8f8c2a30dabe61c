"""Contrastive pairs: against known token probabilities."""

import numpy as np
import pytest

from keras_attnvariants import analysis
from keras_attnvariants.analysis import contrastive
from keras_attnvariants.analysis.contrastive import changed_word
from tests.analysis.fakes import EOS
from tests.analysis.fakes import KnownProbabilities
from tests.analysis.fakes import Words

Pair = analysis.ContrastivePair


@pytest.fixture
def known():
    """Words with probabilities: likely 0.5, rare 0.05, other 0.15; EOS 0.3."""
    words = Words()
    words.encode(["likely rare other"])
    probabilities = np.full(7, 1e-9)
    probabilities[EOS] = 0.3
    probabilities[4:] = 0.5, 0.05, 0.15
    return KnownProbabilities(np.log(probabilities)), words


PAIRS = [
    Pair("s", "likely likely", "likely rare", "noun"),
    Pair("s", "rare", "likely", "noun"),
    Pair("s", "other", "other", "noun"),  # equal is not better
    # Sums: 0.15 < 0.5; means with EOS: sqrt(0.15 * 0.3) < sqrt(0.5 * 0.3).
    Pair("s", "other", "likely", "verb"),
    # Sums: 0.5 ** 4 = 0.0625 < 0.15; means: 0.0625 ** (1 / 5) > 0.045 ** (1 / 2).
    Pair("s", "likely likely likely likely", "other", "length"),
]


def test_the_accuracy_of_categories(known, monkeypatch):
    monkeypatch.setattr(contrastive, "CHUNK", 2)
    table = analysis.contrastive_accuracy(*known, PAIRS)
    assert [(row.score, row.category, row.pairs, row.right) for row in table] == [
        ("sum", "noun", 3, 1),
        ("sum", "verb", 1, 0),
        ("sum", "length", 1, 0),
        ("mean", "noun", 3, 1),
        ("mean", "verb", 1, 0),
        ("mean", "length", 1, 1),
    ]
    assert table.rows[0].accuracy == pytest.approx(100 / 3)
    assert table.sentences == 5


def test_agreement_by_distance(known):
    right, wrong = ("likely", "rare"), ("rare", "likely")
    category = "subj_verb_agreement.mt"
    pairs = [
        Pair("s", *right, category, 1),
        Pair("s", *wrong, category, 1),
        Pair("s", *right, category, 16),
        Pair("s", *right, category, 40),
        Pair("s", "other other likely", "other other rare", category),
        Pair("s", *wrong, "noun", 1),
    ]
    table = analysis.agreement_by_distance(*known, pairs)
    assert [row[:4] for row in table if row.score == "sum"] == [
        ("distance", 1, 2, 1),
        ("distance", 16, 2, 2),
        ("position of the changed word", 3, 1, 1),
    ]
    assert [row.score for row in table] == ["mean", "sum"] * 3
    assert table.sentences == 5
    assert len(table.plot().axes) == 2


def test_no_pairs(known):
    with pytest.raises(ValueError, match="no contrastive pairs"):
        analysis.agreement_by_distance(*known, PAIRS)


def test_the_changed_word():
    assert changed_word("a b c", "a x c") == 2
    assert changed_word("a b c", "a b") == 3
    assert changed_word("a b", "b") == 1


def test_the_picture(known):
    axes = analysis.contrastive_accuracy(*known, PAIRS).plot().axes
    widths = [[bar.get_width() for bar in axis.patches] for axis in axes]
    assert widths == [pytest.approx([100 / 3, 0, last]) for last in (0, 100)]
