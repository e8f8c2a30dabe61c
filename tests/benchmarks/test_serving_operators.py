"""The benchmark of operators: its rows, and what the profiler records."""

import json

import pytest


def test_all_time_is_in_one_row(benchmark, monkeypatch, tmp_path):
    script = benchmark("serving_operators")
    found = {
        "seconds": 30e-3,
        "operators": {"MatMul": (3, 9e-3), "_MklMatMul": (1, 3e-3), "Add": (9, 6e-3)},
    }
    monkeypatch.setattr(script, "export", lambda *_: tmp_path)
    monkeypatch.setattr(script.model, "write", lambda *_: None)
    monkeypatch.setattr(script, "profile", lambda *_: {"1": found})
    script.main(output=tmp_path / "report.json")
    rows = json.loads((tmp_path / "report.json").read_text())["rows"]
    by_name = {row.pop("operators"): [*row.values()] for row in rows}
    assert by_name.pop("products with weights") == pytest.approx([400, 40])
    assert by_name.pop("other kernels") == pytest.approx([200, 20])
    assert by_name.pop("short operators and the executor") == pytest.approx([400, 40])
    assert all(values == [0, 0] for values in by_name.values())


def test_a_request_is_profiled(benchmark, monkeypatch, tmp_path):
    script = benchmark("serving_operators")
    monkeypatch.setitem(script.SIZES, script.Size.SMALL, (400, 1, 32, 32, 2))
    script.main(batch=[2], output=tmp_path / "report.json")
    rows = json.loads((tmp_path / "report.json").read_text())["rows"]
    times = {row["operators"]: row["µs, batch 2"] for row in rows}
    assert times["products with weights"] > 0 and times["products of attention"] > 0
    assert sum(row["%, batch 2"] for row in rows) == pytest.approx(100)
