"""The benchmark of local layers, at sizes that take no time."""

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "local_attention.py"


@pytest.fixture
def benchmark():
    spec = importlib.util.spec_from_file_location("local_attention_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ratios_are_those_of_the_times(benchmark, tmp_path):
    file = tmp_path / "numbers.json"
    sizes = {"short": 4, "long": 8, "width": 8, "num-heads": 2, "runs": 1}
    options = [f"--{name}={value}" for name, value in sizes.items()]
    result = CliRunner().invoke(benchmark.app, [*options, f"--output={file}"])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    assert len(rows) == 4
    for row in rows:
        assert row["layer"] in result.output
        times = [row[f"microseconds_per_token_{length}"] for length in (4, 8)]
        assert row["ratio"] == pytest.approx(times[1] / times[0])


def test_lengths_that_do_not_divide_are_refused(benchmark):
    result = CliRunner().invoke(benchmark.app, ["--short=3", "--long=8"])
    assert result.exit_code == 2
    assert "Received: 8, 3" in result.output


def test_runs_take_turns(benchmark):
    order = []
    programs = {
        (name, 1): lambda name=name: order.append(name) for name in ("first", "second")
    }
    seconds = benchmark.measure(programs, runs=2)
    assert order == ["first", "second"] * 3
    assert set(seconds) == set(programs)
