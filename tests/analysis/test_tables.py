"""Results as text, as files and as pictures."""

import csv
import io
from collections import namedtuple

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console

from keras_attnvariants import analysis
from tests.analysis.fakes import KnownWeights
from tests.analysis.fakes import Words
from tests.analysis.fakes import looks

MODEL = KnownWeights(
    encoder_0={"self": np.concatenate([looks(1, 1), looks(0, 1)])},
    encoder_1={"self": looks(0, 0)},
    decoder_0={"cross": looks(0, 0)},
)
PAIRS = [("a b", "x"), ("", "x")]


def test_a_file_has_all_rows(tmp_path):
    table = analysis.locality(MODEL, Words(), PAIRS)
    table.to_csv(tmp_path / "locality.csv")
    with open(tmp_path / "locality.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header[:5] == ["place", "layer", "head", "distance", "signed"]
    assert rows[0][:5] == ["encoder", "1", "1", "0.5", "0.5"]
    assert len(rows) == len(table) == 4


def test_the_text_says_what_was_analysed():
    lines = str(analysis.entropy(MODEL, Words(), PAIRS)).split("\n")
    assert "Entropy of heads (1 pair, 1 skipped)" in lines[0]
    assert lines[1].split() == [*"place layer head entropy relative tokens".split()]
    assert lines[2].split() == ["encoder", "1", "1", "0.000", "0.000", "2"]


def test_a_narrow_console_has_the_columns_one_after_another():
    table = analysis.locality(MODEL, Words(), PAIRS)
    console = Console(file=io.StringIO(), width=80)
    console.print(table)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    headers = [line.split() for line in lines if "place" in line]
    assert all({"place", "layer", "head", "tokens"} < {*names} for names in headers)
    assert {name for names in headers for name in names} == {*table.columns}


def test_pictures(tmp_path):
    points = analysis.locality(MODEL, Words(), PAIRS).plot(tmp_path / "a.png")
    assert isinstance(points, Figure)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    encoder, cross = points.axes[0].lines
    assert len(encoder.get_xdata()) == 3 and len(cross.get_xdata()) == 1
    curves = analysis.weight_by_distance(MODEL, Words(), PAIRS).plot()
    assert [len(axis.lines) for axis in curves.axes] == [2, 1]
    assert curves.axes[0].get_ylabel() == "weight"


def test_rows_without_their_class_give_the_same_picture():
    """Rows as on the page of a comparison, which knows only columns and values."""
    pair = analysis.AlignedPair("a b", "x", frozenset({(0, 0)}), frozenset({(0, 0)}))
    for name, table in {
        "locality": analysis.locality(MODEL, Words(), PAIRS),
        "off-diagonality": analysis.off_diagonality(MODEL, Words(), PAIRS),
        "alignment-errors": analysis.alignment_errors(MODEL, Words(), [pair]),
    }.items():
        row = namedtuple("row", table.columns)
        rows = [row(*values) for values in table.rows]
        assert analysis.Table.of(name, rows, 1).panels() == table.panels() != []
