"""The benchmark of local layers, at sizes that take no time."""

import json

import pytest
from typer.testing import CliRunner


@pytest.fixture
def local_attention(benchmark):
    return benchmark("local_attention")


def test_ratios_are_those_of_the_times(local_attention, tmp_path):
    file = tmp_path / "numbers.json"
    sizes = {"short": 4, "long": 8, "width": 8, "num-heads": 2, "runs": 1}
    options = [f"--{name}={value}" for name, value in sizes.items()]
    result = CliRunner().invoke(local_attention.app, [*options, f"--output={file}"])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    assert len(rows) == 4
    for row in rows:
        assert row["layer"] in result.output
        times = [row[f"microseconds_per_token_{length}"] for length in (4, 8)]
        assert row["ratio"] == pytest.approx(times[1] / times[0])


def test_lengths_that_do_not_divide_are_refused(local_attention):
    result = CliRunner().invoke(local_attention.app, ["--short=3", "--long=8"])
    assert result.exit_code == 2
    assert "Received: 8, 3" in result.output


def test_runs_take_turns(local_attention):
    order = []
    programs = {
        (name, 1): lambda name=name: order.append(name) for name in ("first", "second")
    }
    seconds = local_attention.measure(programs, runs=2)
    assert order == ["first", "second"] * 3
    assert set(seconds) == set(programs)
