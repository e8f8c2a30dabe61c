"""The benchmark of batches: its arithmetic, and a made-up corpus."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner


@pytest.fixture
def batches(benchmark):
    return benchmark("batches")


@pytest.fixture
def folder(tmp_path):
    """A corpus of sentences of 1 to 12 words."""
    rng = np.random.default_rng(2)
    words = ["".join(rng.choice(list("abcdefg"), 4)) for _ in range(30)]
    for split, count in (("train", 400), ("valid", 10)):
        for language in ("en", "de"):
            lines = (
                " ".join(rng.choice(words, rng.integers(1, 13))) for _ in range(count)
            )
            (tmp_path / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_positions_without_a_token_are_padding(batches):
    row = batches.row("corpus", "way", [(2, 3, 5), (2, 3, 5), (1, 4, 4)], tokens=30)
    assert row["padding"] == pytest.approx(1 - 30 / 40)
    assert row["number"] == 3 and row["shapes"] == 2


def test_the_pipeline_pads_less_than_chance(batches, folder, tmp_path):
    file = tmp_path / "numbers.json"
    options = [f"--data={folder}", "--vocabulary-size=40", "--batch-tokens=600"]
    options += ["--random-rows=16", f"--output={file}"]
    result = CliRunner().invoke(batches.app, options)
    assert result.exit_code == 0, result.output
    ours, random = json.loads(file.read_text())["rows"]
    assert 0 < ours["padding"] < random["padding"] < 1
    assert ours["shapes"] <= ours["shapes at most"]
