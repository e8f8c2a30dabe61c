"""The tasks of the copy benchmark, and the benchmark at a size that takes no time."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner


@pytest.fixture
def copy_reverse(benchmark):
    return benchmark("copy_reverse")


@pytest.fixture
def tiny(copy_reverse, monkeypatch):
    """The benchmark with periods, batches and models of almost no size."""
    sizes = {"num_layers": 1, "hidden_dim": 8, "intermediate_dim": 8, "num_heads": 2}
    monkeypatch.setattr(copy_reverse, "PERIOD", 2)
    monkeypatch.setattr(copy_reverse, "BATCH", 2)
    monkeypatch.setattr(copy_reverse, "SIZES", {**copy_reverse.SIZES, **sizes})
    return copy_reverse


def symbols(row):
    """A sequence up to its end symbol, which has to be there."""
    return row[: row.tolist().index(3)]


@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_targets_are_sources_in_order_or_in_reverse(copy_reverse, task):
    inputs, labels, weights = copy_reverse.examples(task, 200, np.random.default_rng(0))
    lengths = set()
    for source, shifted, target, weight in zip(
        inputs["source_ids"], inputs["target_ids"], labels, weights, strict=True
    ):
        sequence = symbols(source)
        lengths.add(len(sequence))
        assert sequence.min() >= 4
        assert not source[len(sequence) + 1 :].any()
        order = sequence if task == "copy" else sequence[::-1]
        np.testing.assert_array_equal(symbols(target), order)
        np.testing.assert_array_equal(shifted, [2, *target[:-1]])
        assert weight.sum() == len(sequence) + 1
    assert lengths == set(range(5, 21))


def test_accuracy_leaves_padding_out(copy_reverse):
    held_out = copy_reverse.examples("copy", 8, np.random.default_rng(0))

    class Oracle:
        """Right everywhere but at the first token and in the padding."""

        def predict(self, inputs, **options):
            guess = np.where(held_out[1] > 0, held_out[1], 5)
            guess[:, 0] = 0
            return np.eye(32)[guess]

    tokens = held_out[2].sum()
    expected = pytest.approx((tokens - 8) / tokens)
    assert copy_reverse.accuracy(Oracle(), held_out) == expected


def test_numbers_are_written_and_shown(tiny, tmp_path):
    file = tmp_path / "numbers.jsonl"
    arguments = ["kav/base/multi30k", "--updates=300", "--seeds=1", "--target=1e-6"]
    result = CliRunner().invoke(tiny.app, [*arguments, f"--output={file}"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["task"] for row in rows] == ["copy", "reverse"]
    for row in rows:
        (run,) = row["runs"]
        assert run["updates"] == 2
        assert str(run["accuracy"]) in result.output


def test_a_seed_decides_a_training(tiny):
    from keras_attnvariants import presets

    preset = presets.get("kav/hc-all/multi30k")
    model = tiny.compiled(preset, updates=4)
    weights = []
    for seed in (0, 1, 0):
        tiny.restart(model, preset, seed)
        tiny.learn(model, "copy", seed, updates=4, target=2.0)
        weights.append(np.concatenate([w.ravel() for w in model.get_weights()]))
    np.testing.assert_array_equal(weights[0], weights[2])
    assert not np.array_equal(weights[0], weights[1])
