"""Turns, ratios and reports of the benchmarks."""

import json

import pytest


@pytest.fixture
def measuring(benchmark):
    return benchmark("measuring")


@pytest.fixture
def written(measuring, tmp_path, monkeypatch):
    arguments = ["/somewhere/speed.py", "--runs", "3", "--output", "x.json"]
    monkeypatch.setattr("sys.argv", arguments)
    monkeypatch.delenv(measuring.THREADS, raising=False)
    rows = [{"model": "base", "ratio": 1.0}, {"model": "two", "ratio": 1234.5}]
    path = tmp_path / "results" / "speed.json"
    measuring.Report("Speed", "How fast.", "one thread", rows).write(path)
    return path


def test_programs_take_turns(measuring):
    order = []
    programs = {name: lambda name=name: order.append(name) for name in ("a", "b")}
    seconds = measuring.in_turns(programs, runs=3)
    assert order == ["a", "b"] * 3
    assert [len(times) for times in seconds.values()] == [3, 3]


def test_a_ratio_is_the_median_over_rounds(measuring):
    assert measuring.ratio([3.0, 2.0, 8.0], [1.0, 2.0, 4.0]) == 2.0


def test_a_record_says_how_it_came_about(written):
    record = json.loads(written.read_text())
    assert record["command"] == "python benchmarks/speed.py --runs 3"
    assert "keras" in record["versions"] and "cores" in record["machine"]


def test_a_report_is_a_page_of_tables(benchmark, written, tmp_path):
    page = tmp_path / "PERFORMANCE.md"
    benchmark("report").main([written], page)
    lines = page.read_text().splitlines()
    place = lines.index("| model | ratio |")
    assert lines[place + 1 : place + 4] == [
        "|---|---:|",
        "| base | 1 |",
        "| two | 1,234 |",
    ]
    assert "$ python benchmarks/speed.py --runs 3" in lines
