"""The comparison with JoeyNMT: our program at tiny size, and the table."""

import sys

import pytest

from keras_attnvariants import Tokenizer
from keras_attnvariants import data


@pytest.fixture
def joeynmt(benchmark):
    return benchmark("joeynmt")


def test_ours_reports_at_each_point(joeynmt, corpus_folder, tmp_path):
    corpus = data.load_corpus(corpus_folder, "xx", "yy", cache_dir=tmp_path / "cache")
    tokenizer = Tokenizer.train(corpus.files("train"), 50)
    tokenizer.save(tmp_path / "tokenizer.model")
    sizes = {"num_layers": 1, "hidden_dim": 8, "intermediate_dim": 8, "num_heads": 2}
    task = {
        "points": [0.1, 0.2],  # importing has taken as long
        "data": str(corpus_folder),
        "source": "xx",
        "target": "yy",
        "tokenizer": str(tmp_path / "tokenizer.model"),
        "cache": str(tmp_path / "cache"),
        "sizes": sizes,
        "dropout": 0.1,
        "label_smoothing": 0.1,
        "learning_rate": 2e-3,
        "warmup_steps": 400,
        "batch_tokens": 256,
        "precision": "float32",
        "threads": 1,
        "seed": 1,
    }
    found = joeynmt.trained(joeynmt.OURS, sys.executable, task, tmp_path / "ours")
    start, first, second = found
    assert start["start"] > 0 and start["parameters"] > 0
    assert first["tokens"] > 0 and first["updates"] == second["updates"] == 1
    sides = corpus.read_lines("validation")[1]
    lengths = [len(ids) + 1 for ids in tokenizer.encode(sides)]
    assert first["scored"] == sum(lengths)
    assert 0 < first["loss"] < 10
    assert first["loss"] == pytest.approx(second["loss"], rel=1e-5)


def test_a_row_has_both_programs_at_a_point(joeynmt):
    def lines(tokens, scored=7):
        point = {"seconds": 60.2, "tokens": tokens, "loss": 3.0, "scored": scored}
        return [{"start": 5.0}, point]

    [row] = joeynmt.rows_of({joeynmt.OURS: lines(900), joeynmt.JOEY: lines(300)})
    assert row["CPU seconds"] == 60 and row[joeynmt.RATIO] == 3.0 == row["bar"]
    other = {joeynmt.OURS: lines(900), joeynmt.JOEY: lines(300, scored=8)}
    with pytest.raises(RuntimeError, match="7 and 8"):
        joeynmt.rows_of(other)


def test_a_program_that_fails_says_why(joeynmt, tmp_path):
    task = {"points": [1.0], "threads": 1}
    with pytest.raises(RuntimeError, match="JoeyNMT 2.3 failed:.*KeyError|Module"):
        joeynmt.trained(joeynmt.JOEY, sys.executable, task, tmp_path / "run")
