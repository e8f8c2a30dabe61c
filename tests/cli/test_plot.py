"""`kav plot`: two files that show the runs."""

import importlib.util

import pytest

from tests.cli.conftest import check_error
from tests.cli.conftest import stdout


def test_a_picture_and_a_page(kav, run_folder, tmp_path):
    output = stdout(kav("plot", run_folder, "--output", tmp_path / "two.runs"))
    written = [tmp_path / "two.runs.png", tmp_path / "two.runs.html"]
    assert output.splitlines() == [str(path) for path in written]
    assert written[0].read_bytes().startswith(b"\x89PNG")
    assert str(run_folder) in written[1].read_text("utf-8")


def test_a_damaged_log(kav, tmp_path):
    (tmp_path / "log.jsonl").write_text('{"event": "period"}\n')
    result = kav("plot", tmp_path, "--output", tmp_path / "curves")
    check_error(result, "Line 1", "log.jsonl")


@pytest.mark.parametrize("call", [("plot", "."), ("attention", "a", "--model", ".")])
def test_without_matplotlib(call, kav, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check_error(kav(*call), "matplotlib, not installed here", "pip install")
