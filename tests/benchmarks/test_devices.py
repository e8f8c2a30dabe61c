"""The benchmark of several processes: its programs at tiny size, and the table."""

import json
import os
import sys

import pytest
from typer.testing import CliRunner

CORES = sorted(os.sched_getaffinity(0))
FAILS = [sys.executable, "-c", "raise SystemExit('no room')"]
WAITS = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def devices(benchmark):
    return benchmark("devices")


def test_efficiency_is_the_gain_over_one_core_by_the_cores(devices):
    rows = devices.rows_of(512, {(1, 1): 100.0, (1, 2): 170.0, (2, 2): 150.0})
    assert [row["efficiency"] for row in rows] == [1.0, 0.85, 0.75]


@pytest.mark.timeout(600)
@pytest.mark.skipif(len(CORES) < 2, reason="two processes need two cores")
def test_one_and_two_processes(devices, tmp_path):
    pytest.importorskip("jax")
    file = tmp_path / "numbers.json"
    sizes = "--batch=512 --updates=2 --layers=1 --width=8 --words=3"
    result = CliRunner().invoke(devices.app, [*sizes.split(), f"--output={file}"])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    kinds = [(row["processes"], row["cores"]) for row in rows]
    assert kinds == [(1, 1), (1, 2), (2, 2)]
    assert all(row["tokens/s"] > 0 for row in rows)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("commands", [[FAILS, WAITS], [WAITS, FAILS]])
def test_the_one_that_fails_is_shown_and_the_others_end(devices, commands):
    with pytest.raises(RuntimeError, match="no room"):
        devices.train(commands, CORES)
