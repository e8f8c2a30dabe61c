"""The benchmark of mixed requests: its rows, and a tiny run."""

import json

import pytest
from typer.testing import CliRunner


@pytest.fixture
def requests(benchmark):
    return benchmark("serving_requests")


def test_requests_are_compared_with_those_of_about_the_same_cost(requests):
    found = {
        "memory": [100e6, 200e6, 203e6],
        "seconds": [
            [8, 1, [1.0, 1.0, 2.0], [2.0, 4.0, 2.0]],
            [8, 2, [5.0], [6.0]],
            [16, 1, [3.0, 9.0, 3.0], [3.0, 12.0, 3.0]],
        ],
    }
    rows = requests.rows_of(8, found)
    assert {row["program"] for row in rows} == {"8 threads"}
    memory, narrow, wide = rows
    assert memory["measured"] == pytest.approx(1.5) and memory["bar"] == 2
    assert "200 MB at request 500, 203 MB at the end" in memory["in all"]
    assert narrow["measured"] == 2 and "1 to 8 tokens" in narrow["measurement"]
    assert narrow["in all"] == (
        "p50 1500, p95 4550, p99 4910 ms of 4 requests; "
        "by the clock p50 3000, p95 5700, p99 5940 ms, slowest 2.0"
    )
    assert wide["measured"] == 3 and "9 to 16 tokens" in wide["measurement"]


def test_a_tiny_model_stays_as_it_is(requests, monkeypatch, tmp_path):
    def tiny(folder, precision, sizes):
        sizes = sizes | {"num_layers": 1, "vocabulary_size": 100}
        return export(folder, precision, sizes)

    export = requests.export
    monkeypatch.setattr(requests, "export", tiny)
    file = tmp_path / "numbers.json"
    arguments = ["--threads", "2", "--requests", "501", "--width", "16"]
    result = CliRunner().invoke(requests.app, [*arguments, "--output", str(file)])
    assert result.exit_code == 0, result.output
    memory, *times = json.loads(file.read_text())["rows"]
    assert memory["measured"] < 50
    assert [row["measurement"].split(", ")[1] for row in times] == [
        "1 to 8 tokens",
        "9 to 16 tokens",
        "17 to 24 tokens",
        "25 to 32 tokens",
        "33 to 48 tokens",
        "49 to 64 tokens",
    ]
