"""Fixtures: a corpus of reversed sentences, and tiny untrained models for it."""

import json
from pathlib import Path

import numpy as np
import pytest


def write_corpus(folder: Path) -> Path:
    """Writes a language of made-up words (xx), and the same read backwards (yy)."""
    rng = np.random.default_rng(8)
    letters = list("abdeiklmnorstu")
    words = ["".join(rng.choice(letters, rng.integers(2, 6))) for _ in range(40)]
    for split, count in (("train", 600), ("validation", 20), ("test", 20)):
        lines = [rng.choice(words, rng.integers(1, 6)).tolist() for _ in range(count)]
        for language, step in (("xx", 1), ("yy", -1)):
            text = "".join(" ".join(line[::step]) + "\n" for line in lines)
            (folder / f"{split}.{language}").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="session")
def corpus_folder(tmp_path_factory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("reversed"))


@pytest.fixture(scope="session")
def corpus_cache(tmp_path_factory) -> Path:
    """Cache folder for cleaned corpora."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def run_folder(corpus_folder, tmp_path_factory) -> Path:
    """A run whose average is better than its best model; both are untrained."""
    import keras

    import keras_attnvariants as kav

    # With this seed, no translation of a test sentence is empty.
    keras.utils.set_random_seed(7)
    folder = tmp_path_factory.mktemp("runs") / "run"
    files = [corpus_folder / f"train.{language}" for language in ("xx", "yy")]
    tokenizer = kav.Tokenizer.train(files, vocabulary_size=50)
    attention = kav.DotProductAttention(num_heads=2)
    for name in ("best", "averaged"):
        model = kav.Transformer(
            50, 1, 8, 16, attention, attention, attention, max_length=32, name=name
        )
        kav.save_model(model, folder / name, tokenizer)
    tokenizer.save(folder / "tokenizer.model")
    events = [
        {"event": "period", "step": 10, "val_loss": 3.0},
        {"event": "averaged", "step": 10, "val_loss": 2.5},
    ]
    log = "".join(json.dumps(event) + "\n" for event in events)
    (folder / "log.jsonl").write_text(log)
    return folder
