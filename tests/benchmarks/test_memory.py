"""The benchmark of memory: its arithmetic, and processes that are measured."""

import json

import pytest
from typer.testing import CliRunner


@pytest.fixture
def memory(benchmark):
    return benchmark("memory")


def test_slope_is_the_memory_of_a_token_and_intercept_the_rest(memory):
    kib, mib = 2**10, 2**20
    peaks = {
        "base": {size: 100 * mib + 200 * kib * size for size in (10, 20, 30)},
        "hc-sa": {size: 50 * mib + 100 * kib * size for size in (10, 20, 30)},
    }
    base, other = memory.rows_of(peaks, budget=2**30)
    assert base["KiB per token"] == pytest.approx(200)
    assert base["MiB besides"] == pytest.approx(100)
    assert base["largest deviation, MiB"] == pytest.approx(0, abs=1e-6)
    assert base["tokens in 1 GiB"] == pytest.approx(924 * 1024 / 200)
    assert base["tokens per memory / base"] == 1 and base["bar"] is None
    assert other["tokens per memory / base"] == pytest.approx(2)
    assert other["tokens that fit / base"] == pytest.approx(2 * 974 / 924)
    assert other["bar"] == 1.17


def test_a_failed_process_says_why(memory):
    with pytest.raises(RuntimeError, match="no/such/preset"):
        memory.measure("no/such/preset", 1, 2, "float32", jit=False)


def test_more_tokens_take_more_memory(memory):
    few, many = (
        memory.measure("kav/hc-sa/multi30k", batch, 32, "float32", jit=False)
        for batch in (1, 64)
    )
    assert 100 * 2**20 < few < many


def test_every_model_is_measured_at_every_size(memory, tmp_path, monkeypatch):
    calls = []

    def measure(preset, batch, length, policy, jit):
        calls.append((preset, batch))
        return (len(preset) + batch) * 2**20

    monkeypatch.setattr(memory, "measure", measure)
    file = tmp_path / "numbers.json"
    options = ["--batch=1", "--batch=2", f"--output={file}"]
    result = CliRunner().invoke(memory.app, ["main", "base", "sh-x", *options])
    assert result.exit_code == 0, result.output
    names = [f"you2020/{name}/wmt16-en-ro" for name in ("base", "sh-x")]
    assert calls == [(name, size) for name in names for size in (1, 2)]
    assert len(json.loads(file.read_text())["rows"]) == 2
