"""The benchmark of plans, with a small corpus."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner


@pytest.fixture
def planner(benchmark):
    return benchmark("planner")


def test_lengths_are_those_of_the_token_files(planner, tmp_path):
    planner.write_tokens(tmp_path, 1000)
    source, target = planner.tokens_of(tmp_path).split("train")
    assert len(source.lengths) == len(target.lengths) == 1000
    assert source.lengths.sum() == len(source.ids)
    assert np.corrcoef(source.lengths, target.lengths)[0, 1] > 0.8


def test_each_size_has_a_row_for_the_beginning_and_the_middle(planner, tmp_path):
    file = tmp_path / "numbers.json"
    arguments = ["--pairs=3000", "--batch-tokens=512", f"--output={file}"]
    result = CliRunner().invoke(planner.app, arguments)
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    assert [(row["pairs"], row["from"]) for row in rows] == [
        ("3,000", "beginning"),
        ("3,000", "middle"),
    ]
    for row in rows:
        assert 0 < row["planning, s"] < row["first batch, s"]
        assert row["batches"] > 100
        assert 0.1 < row["memory, GB"] < row["bar"] == 2.0


def test_other_batches_in_the_middle_are_an_error(planner, monkeypatch, tmp_path):
    def fake(function, *arguments):
        return {"middle": str(arguments)}

    monkeypatch.setattr(planner, "in_own_process", fake)
    with pytest.raises(RuntimeError, match="not those that follow"):
        planner.rows_of(10, 64, tmp_path)
