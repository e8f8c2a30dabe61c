"""Rows of tables as files."""

import csv

import pytest

from keras_attnvariants.utils.records import harmless
from keras_attnvariants.utils.records import write_csv
from keras_attnvariants.utils.records import write_table


def test_rows_come_back(tmp_path):
    rows = [["name", "share"], ['a "b", c\nd', "0.5"], ["ä", "-1e-3"], ["", "2"]]
    write_csv(tmp_path / "table.csv", rows)
    content = (tmp_path / "table.csv").read_bytes()
    assert b"\r" not in content
    assert list(csv.reader(content.decode("utf-8").splitlines(keepends=True))) == rows


@pytest.mark.parametrize("cell", ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1"])
def test_formulas_are_texts(cell, tmp_path):
    assert harmless(cell) == f"'{cell}"
    write_csv(tmp_path / "table.csv", [[cell]])
    assert "'" in (tmp_path / "table.csv").read_text("utf-8")


@pytest.mark.parametrize("cell", ["-0.5", "+3", -2, None, "a=b", "nan"])
def test_numbers_and_other_texts_stay(cell):
    assert harmless(cell) is cell


def test_rows_need_not_have_all_columns(tmp_path):
    write_table(tmp_path / "table.csv", [{"a": 1}, {"a": None, "b": "=2"}])
    assert (tmp_path / "table.csv").read_text("utf-8") == "a,b\n1,\n,'=2\n"
