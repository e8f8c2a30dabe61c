"""Turns, ratios and reports of the benchmarks."""

import json
import os

import pytest


@pytest.fixture
def measuring(benchmark):
    return benchmark("measuring")


@pytest.fixture
def written(measuring, tmp_path, monkeypatch):
    arguments = ["/somewhere/speed.py", "--runs", "3", "--output", "x.json"]
    monkeypatch.setattr("sys.argv", arguments)
    for name in (measuring.THREADS, measuring.ONEDNN, *measuring.LIMITS):
        monkeypatch.delenv(name, raising=False)
    rows = [
        {"model": "base", "ratio": 1.0, "other ratio": 1.0, "bar": None},
        {"model": "two", "ratio": 1234.5, "other ratio": 0.5, "bar": 2.0},
        {"model": "three", "ratio": 1.5, "other ratio": 1.75, "bar": 2.0},
    ]
    path = tmp_path / "results" / "speed.json"
    judged = "ratio", "other ratio"
    measuring.Report("Speed", "How fast.", "one thread", rows, judged).write(path)
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


def test_a_record_says_what_stood_in_for_another_processor(measuring, monkeypatch):
    monkeypatch.setattr("sys.argv", ["speed.py"])
    for name in (measuring.THREADS, measuring.ONEDNN, *measuring.LIMITS):
        monkeypatch.delenv(name, raising=False)
    assert "limited" not in measuring.machine()
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    assert measuring.machine().endswith(f"limited to AVX2, {os.cpu_count()} cores")
    limits = "TF_ENABLE_ONEDNN_OPTS=0 ONEDNN_MAX_CPU_ISA=AVX2"
    assert measuring.command() == f"{limits} python benchmarks/speed.py"


def test_processors_of_different_kinds_are_not_mixed(benchmark, written, tmp_path):
    report, page = benchmark("report"), tmp_path / "PERFORMANCE.md"
    record = json.loads(written.read_text())
    for machine in ("Old, 2 cores", "New (AVX2), 2 cores", "New (AVX2), 2 cores"):
        written.write_text(json.dumps(record | {"machine": machine}))
        report.main([written], page)
    before = page.read_text()
    written.write_text(json.dumps(record | {"machine": "New (AVX512), 2 cores"}))
    with pytest.raises(ValueError, match="--suffix"):
        report.main([written], page)
    assert page.read_text() == before
    report.main([written], page, suffix=" with AVX512")
    assert "## Speed with AVX512\n" in page.read_text()
    assert before.split("## Speed\n")[1] in page.read_text()


def test_what_is_written_by_hand_stays_first(benchmark, written, tmp_path):
    report, page = benchmark("report"), tmp_path / "PERFORMANCE.md"
    page.write_text("# Old head\n\n## In short\n\nFast enough.\n")
    for _ in range(2):
        report.main([written], page)
    heads = [line for line in page.read_text().splitlines() if line.startswith("##")]
    assert heads == ["## In short", "## Bars", "## Speed"]
    assert page.read_text().count("Fast enough.") == 1


def test_a_report_is_a_page_of_tables(benchmark, written, tmp_path):
    page = tmp_path / "PERFORMANCE.md"
    benchmark("report").main([written], page)
    lines = page.read_text().splitlines()
    place = lines.index("| model | ratio | other ratio | bar |")
    assert lines[place + 1 : place + 4] == [
        "|---|---:|---:|---:|",
        "| base | 1 | 1 |  |",
        "| two | 1,234 | 0.5 | 2 |",
    ]
    assert "$ python benchmarks/speed.py --runs 3" in lines


def test_the_page_begins_with_what_stands_against_a_bar(benchmark, written, tmp_path):
    page = tmp_path / "PERFORMANCE.md"
    benchmark("report").main([written], page)
    lines = page.read_text().splitlines()
    place = lines.index("| measurement | reached | missed |")
    assert lines[place + 2] == "| Speed | 1 of 2 | three: 1.75 instead of ≥ 2 |"


def test_other_reports_of_the_page_stay(benchmark, written, tmp_path):
    page, other = tmp_path / "PERFORMANCE.md", tmp_path / "other.json"
    report = benchmark("report")
    record = json.loads(written.read_text())
    other.write_text(json.dumps(record | {"title": "Memory"}))
    report.main([written, other], page)
    before = page.read_text()
    report.main([other], page)
    assert page.read_text() == before
    record["rows"][1] |= {"ratio": 1.0, "bar": None}
    other.write_text(json.dumps(record))
    report.main([other], page)
    after = page.read_text()
    assert "| Speed | 0 of 1 |" in after and "| Memory | 1 of 2 |" in after
    assert [line for line in after.splitlines() if line[:2] == "##"] == [
        *("## Bars", "## Speed", "## Memory")
    ]


def test_rows_are_named_in_the_summary(benchmark):
    label = benchmark("report").label
    assert label({"batch": 8, "model": "base", "machine": "1 of 2"}) == "batch 8, base"
    assert label({"seconds": 30, "ratio": 3.5}) == "30 seconds"


def test_an_upper_bound_is_reached_from_below(benchmark):
    report = benchmark("report")
    record = {"judged": ["a", "b"], "at_most": True}
    row = {"a": 1.3, "b": 1.1, "bar": 1.2}
    assert report.judged(row, record) == 1.1
    assert report.reached(1.1, 1.2, record) and not report.reached(1.3, 1.2, record)
