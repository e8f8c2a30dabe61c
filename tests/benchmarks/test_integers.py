"""The benchmark of 8-bit integers, with a small model."""

import json

import pytest
from typer.testing import CliRunner

from keras_attnvariants import backend
from tests.quantization import quantizing

SMALL = {
    "vocabulary_size": 50,
    "num_layers": 1,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "num_heads": 2,
}


@pytest.fixture
def integers(benchmark, monkeypatch):
    module = benchmark("integers")
    monkeypatch.setattr(module, "SIZES", SMALL)
    monkeypatch.setattr(module, "BATCHES", [1, 2])
    # TensorFlow is running already.
    monkeypatch.setattr(module, "use_one_thread", lambda: None)
    return module


def test_rows_for_every_precision_and_the_check(integers, tmp_path):
    file = tmp_path / "numbers.json"
    options = ["--steps=3", "--runs=1", "--requests=1", f"--output={file}"]
    with quantizing():
        result = CliRunner().invoke(integers.app, options)
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    searches = [
        f"{name}, batch {batch}"
        for batch in (1, 2)
        for name in ("float32", "bfloat16", "int8")
    ]
    check = ["export in int8, request of one sentence"]
    exact = backend.is_onednn_exact()
    assert [row["program"] for row in rows] == searches + (check if exact else [])
    assert rows[0]["ratio"] == 1
    assert all(row["ratio"] > 0 for row in rows)
