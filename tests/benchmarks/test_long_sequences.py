"""The benchmark of long sequences: its arithmetic, and a run at tiny size."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

SIZES = {"short": 4, "long": 8, "width": 8, "num-heads": 2, "runs": 2}


@pytest.fixture
def long_sequences(benchmark):
    return benchmark("long_sequences")


def test_ratios_are_those_of_the_times(long_sequences):
    times = {("layer", "forward", 2): [1.0, 2.0], ("layer", "forward", 8): [3.0, 2.0]}
    [row] = long_sequences.rows_of(times, 2, 8, tokens=1_000_000)
    assert row["ratio"] == 2.0
    assert row["length 8"] == 2.5
    assert row["microseconds per token, length 2"] == 1.5


def test_every_layer_runs_forward_and_backward(long_sequences, tmp_path):
    file = tmp_path / "numbers.json"
    options = [f"--{name}={value}" for name, value in SIZES.items()]
    result = CliRunner().invoke(
        long_sequences.app, [*options, "--no-jit", f"--output={file}"]
    )
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    passes = {(row["layer"], row["pass"]) for row in rows}
    names = long_sequences.layers(2, 3)
    assert passes == {(name, kind) for name in names for kind in long_sequences.PASSES}
    assert all(row["ratio"] > 0 for row in rows)


def test_gradients_reach_the_input_and_every_weight(long_sequences):
    import keras

    x = keras.random.normal((1, 6, 8), seed=1)
    mask = keras.ops.ones((1, 6), "bool")
    for layer, options in long_sequences.layers(2, 3).values():
        layer(x, x)

        def forward(x, mask, layer=layer, options=options):
            return layer(x, x, value_mask=mask, **options)

        found = long_sequences.with_gradients(layer, forward)(x, mask)
        found = keras.tree.flatten(found)
        assert len(found) == 1 + len(layer.trainable_variables)
        assert all(np.asarray(gradient).any() for gradient in found)


def test_lengths_that_do_not_divide_are_refused(long_sequences):
    result = CliRunner().invoke(long_sequences.app, ["--short=3", "--long=8"])
    assert result.exit_code == 2
    assert "Received: 8, 3" in result.output
