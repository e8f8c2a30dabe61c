"""The benchmark of exported models: its tables, and a tiny run."""

import json
from pathlib import Path

import pytest
import tensorflow as tf
from typer.testing import CliRunner

TINY = (200, 2, 32, 64, 4)


@pytest.fixture
def tables(benchmark):
    return benchmark("serving_tables")


def test_bars_are_those_of_the_fastest_with_and_without_a_shortlist(
    tables, monkeypatch
):
    monkeypatch.setattr(tables, "operators_per_step", lambda path: 7)
    monkeypatch.setattr(tables, "uses_avx512", lambda: True)
    monkeypatch.setattr(Path, "stat", lambda path: type("Stat", (), {"st_size": 3e6}))
    seconds = {
        tables.PEER: [2.0, 2.0, 4.0],
        ("base", "bfloat16"): [4.0, 4.0, 4.0],
        ("base", "int8"): [8.0, 5.0, 8.0],
        ("base", "int8, shortlist"): [2.0, 2.0, 2.0],
    }
    exported = {
        key: tables.Exported(path, 1.0, 2.0, 50_000_000)
        for key, path in zip(seconds, [None, *map(Path, "abc")], strict=True)
    }
    rows = tables.speed_rows(256, 8, 30, seconds, exported)
    assert [row["bar"] for row in rows] == [None, 0.8, None, 0.8]
    assert [row["of CTranslate2"] for row in rows] == [1, 0.5, 0.4, 1]
    assert [row["tokens per CPU second"] for row in rows] == [120, 60, 30, 120]
    assert [row["operators per step"] for row in rows] == [None, 7, 7, 7]
    assert rows[1]["graph, MB"] == 3 and rows[1]["memory, MB"] == 50
    monkeypatch.setattr(tables, "uses_avx512", lambda: False)
    rows = tables.speed_rows(256, 8, 30, seconds, exported)
    assert [row["bar"] for row in rows] == [None, 0.65, None, 0.65]
    del seconds[tables.PEER]
    rows = tables.speed_rows(256, 8, 30, seconds, exported)
    assert [row["of CTranslate2"] for row in rows] == [None] * 3


def test_forms_are_options_of_exports(benchmark):
    serving = benchmark("serving")
    assert serving.Form.INT8.options(8000) == {"precision": "int8"}
    options = serving.Form.SHORTLISTED.options(8000)
    shortlist = options.pop("shortlist")
    assert options == {"precision": "bfloat16", "shortlist_width": 500}
    shortlist.check(8000, 8000)
    assert len(shortlist.common) == 125 and shortlist.by_source.shape == (8000, 50)


def test_a_tiny_model_alone(benchmark, monkeypatch, tmp_path):
    serving = benchmark("serving")
    monkeypatch.setitem(serving.SIZES, serving.Size.SMALL, TINY)
    file = tmp_path / "numbers.json"
    arguments = "--size 256 --batch 1 --batch 2 --runs 1 --no-peer"
    arguments = [
        *arguments.split(),
        "--precision",
        "bfloat16",
        "--max-tokens",
        "32",
        "--output",
        str(file),
    ]
    result = CliRunner().invoke(serving.app, ["speed", *arguments])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    assert [(row["program"], row["batch"]) for row in rows] == [
        ("base", 1),
        ("hc-sa", 1),
        ("base", 2),
        ("hc-sa", 2),
    ]
    assert all(row["of CTranslate2"] is None for row in rows)
    assert rows[0]["operators per step"] > rows[1]["operators per step"] > 20
    assert min(row["memory, MB"] for row in rows) > 1


def saved(path, function) -> None:
    """Saves a function of a float as a SavedModel."""
    function = tf.function(function, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(tf.Module(), str(path), {"serving_default": function})


def test_operators_of_called_functions_count_and_constants_do_not(tables, tmp_path):
    twice = tf.function(lambda x: tf.tanh(tf.exp(x)))

    def body(i, x):
        return i + 1, twice(tf.identity(x)) + tf.constant(2.0)

    def loop(x):
        return {"y": tf.while_loop(lambda i, x: i < 3, body, (0, x))[1]}

    saved(tmp_path / "plain", loop)
    # i + 1 and the counter of the loop; Tanh, Exp and the sum.
    assert tables.operators_per_step(tmp_path / "plain") == 5

    def nested(x):
        def outer(i, x):
            return i + 1, loop(x)["y"]

        return {"y": tf.while_loop(lambda i, x: i < 3, outer, (0, x))[1]}

    saved(tmp_path / "nested", nested)
    assert tables.operators_per_step(tmp_path / "nested") == 5


def test_a_model_without_a_loop_has_no_steps(tables, tmp_path):
    saved(tmp_path, lambda x: {"y": x + 1})
    assert tables.operators_per_step(tmp_path) == 0
