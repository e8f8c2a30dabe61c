"""The benchmark of the length of the source: its arithmetic, and a run at tiny size."""

import json

import pytest
from typer.testing import CliRunner


@pytest.fixture
def source_length(benchmark):
    return benchmark("source_length")


@pytest.mark.parametrize(
    "times, begin",
    [([1, 1, 1], 8), ([5, 1, 1], 16), ([1, 5, 1], 32), ([1, 1, 5], None)],
)
def test_an_encoder_takes_less_from_a_length_on(source_length, times, begin):
    values = {("linear", 8 * 2**i): t for i, t in enumerate(times)}
    values |= {("base", length): 2.0 for length in (8, 16, 32)}
    assert source_length.from_which_on(values, "linear", [8, 16, 32]) == begin


def test_encoders_are_timed_weighed_and_drawn(source_length, tmp_path):
    file, drawing = tmp_path / "numbers.json", tmp_path / "curves.png"
    encoders = ("base", "linear")
    options = [f"--encoders={name}" for name in encoders]
    options += ["--lengths=16", "--lengths=64", "--runs=1"]
    options += [f"--output={file}", f"--picture={drawing}"]
    result = CliRunner().invoke(source_length.app, options)
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    units = [(row["encoder"], row["of a step"]) for row in rows]
    assert units == [(name, unit) for unit in ("ms", "MiB") for name in encoders]
    assert all(row["16"] > 0 and row["64"] > 0 for row in rows[:2])
    assert drawing.stat().st_size > 5000
