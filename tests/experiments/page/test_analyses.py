"""Findings of analyses in words: tables of a few rows, one of each kind."""

import dataclasses

import pytest

from keras_attnvariants.experiments.page.analyses import ours
from keras_attnvariants.experiments.results import AnalysisTable

HEADS = "place layer head"
BINS = (
    "by low high sentences system bleu bleu_low bleu_high difference difference_low "
    "difference_high"
)


def table(analysis: str, columns: str, *rows, system: str = "base") -> AnalysisTable:
    return AnalysisTable(
        analysis, "", system, 1, "test2016", tuple(columns.split()), rows, 3
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            table(
                "locality",
                f"{HEADS} distance",
                ("encoder", 1, 1, 0.5),
                ("encoder", 1, 2, 1.5),
                ("encoder", 2, 1, 4.0),
                ("cross", 1, 1, 3.0),
            ),
            "encoder 2.00, cross 3.00; in encoder layer 1 from 0.50 to 1.50",
        ),
        (
            table(
                "distance",
                "place layer distance weight",
                *[("encoder", 1, d, 0.3) for d in (-1, 0, 1)],
                ("encoder", 1, 2, 0.1),
                ("encoder", 3, 0, 0.25),
                ("decoder", 4, 0, 1.0),
            ),
            "90 % in encoder layer 1 and 25 % in encoder layer 3",
        ),
        (
            table("entropy", f"{HEADS} entropy", ("decoder", 1, 1, 2.5)),
            "decoder 2.50",
        ),
        (
            table(
                "off-diagonality",
                f"{HEADS} share",
                ("encoder", None, None, 0.4),
                ("encoder", 1, 1, 0.9),
            ),
            "encoder 0.40",
        ),
        (
            table(
                "contrastive",
                "category pairs right accuracy low high",
                ("kein", 30, 27, 90.0, 74.4, 96.5),
                ("nicht", 10, 5, 50.0, 23.7, 76.3),
            ),
            "80.0 % of 40; nicht 50.0 % (23.7 to 76.3)",
        ),
        (
            table(
                "agreement",
                "measure distance pairs right accuracy low high",
                ("distance", 1, 10, 9, 90.0, 60, 98),
                ("distance", 16, 10, 6, 60.0, 31, 83),
            ),
            "90.0 % at distance 1, 60.0 % at 16",
        ),
        (
            table(
                "alignment-errors",
                "layer head error_rate low high",
                (1, 1, 0.6, 0.5, 0.7),
                (2, None, 0.25, 0.2, 0.3),
                (2, 3, 0.5, 0.4, 0.6),
            ),
            "0.250 (0.200 to 0.300), the mean of heads of layer 2",
        ),
        (
            table(
                "activation-shares",
                "place layer measure query key share",
                ("encoder", 3, "winner", 1, 1, 4.0),
                ("encoder", 3, "winner", 2, 2, 96.0),
                ("encoder", 3, "mass", 1, 1, 100.0),
            ),
            "phrase to phrase in encoder layer 3 (96 %)",
        ),
    ],
    ids=lambda value: getattr(value, "analysis", ""),
)
def test_of_one_system(found, expected):
    assert list(ours([found])) == [("base", expected)]


def test_of_all_systems():
    rows = [
        ("words", 0, 10, 5, "base", 30.0, 29.0, 31.0, None, None, None),
        ("words", 0, 10, 5, "hc-sa", 31.0, 30.0, 32.0, 1.0, 0.5, 1.5),
        ("words", 10, 20, 5, "hc-sa", 28.0, 27.0, 29.0, -2.0, -3.0, -1.0),
    ]
    found = table("bleu-by-length", BINS, *rows, system="")
    [(system, text)] = ours([found])
    assert system == "hc-sa"
    assert text == "+1.00 (+0.50 to +1.50), then −2.00 (−3.00 to −1.00)"


def test_reasons_for_an_empty_result():
    found = dataclasses.replace(table("entropy", ""), note="n-grams have no weights")
    assert list(ours([found])) == [("base", "n-grams have no weights")]


def test_no_words():
    assert list(ours([table("heat-maps", "row", (1,))])) == []
    assert list(ours([table("entropy", "")])) == []
