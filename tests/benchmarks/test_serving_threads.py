"""The benchmark of threads: its settings and its rows."""

import json


def test_rows_are_medians_of_four_settings(benchmark, monkeypatch, tmp_path):
    threads = benchmark("serving_threads")
    monkeypatch.setattr(threads, "export", lambda *_: tmp_path)
    monkeypatch.setattr(threads.model, "write", lambda *_: None)
    factors = iter([1, 1, 1, 1, 3, 3, 3, 3, 2, 2, 2, 2])

    def speeds(path, vocabulary, threads, clients):
        assert (path, vocabulary) == (tmp_path, 8000)
        return dict.fromkeys(("1", "8", "64"), next(factors) * clients / threads)

    monkeypatch.setattr(threads, "speeds", speeds)
    threads.main(cores=4, runs=3, output=tmp_path / "report.json")
    rows = json.loads((tmp_path / "report.json").read_text())["rows"]
    assert [tuple(row.values()) for row in rows] == [
        (1, 1, 2.0, 2.0, 2.0),
        (4, 1, 0.5, 0.5, 0.5),
        (4, 4, 2.0, 2.0, 2.0),
        (1, 4, 8.0, 8.0, 8.0),
    ]
