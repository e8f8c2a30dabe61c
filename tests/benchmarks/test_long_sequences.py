"""The benchmark of long sequences: its arithmetic, its programs, a run at tiny size."""

import json

import keras
import numpy as np
import pytest
from typer.testing import CliRunner

WIDTH, HEADS, N = 8, 2, 3
SIZES = {"width": WIDTH, "num_heads": HEADS, "n": N}


@pytest.fixture
def long_sequences(benchmark):
    return benchmark("long_sequences")


def test_one_row_for_a_layer_and_side(long_sequences):
    passes = ("forward", "forward_and_backward", "steps")
    seconds = {
        ("NeuralNgram", "decoder", title, length): [1.0 * length, 2.0 * length]
        for title in passes
        for length in (2, 8)
    }
    memory = {("NeuralNgram", "decoder", length): 1024.0 * length for length in (2, 8)}
    [row] = long_sequences.report_rows(seconds, memory, 2, 8)
    assert row == {
        "layer": "NeuralNgram",
        "side": "decoder",
        "forward": 4.0,
        "forward and backward": 4.0,
        "steps": 4.0,
        "bar": 1.3,
        "KiB per token, 2": 2.0,
        "KiB per token, 8": 8.0,
    }


def test_learned_attention_has_no_bar_and_an_encoder_no_step(long_sequences):
    name = long_sequences.BASELINE
    seconds = {
        (name, "encoder", title, length): [1.0]
        for title in ("forward", "forward_and_backward")
        for length in (2, 8)
    }
    [row] = long_sequences.report_rows(seconds, {(name, "encoder", 8): 1.0}, 2, 8)
    assert row["bar"] is None and row["steps"] is None


def test_every_layer_is_timed_and_weighed(long_sequences, tmp_path):
    file = tmp_path / "numbers.json"
    sizes = {"short": 4, "long": 8, "width": WIDTH, "num-heads": HEADS, "runs": 1}
    options = [f"--{name}={value}" for name, value in sizes.items()]
    result = CliRunner().invoke(
        long_sequences.app, [*options, "--no-jit", f"--output={file}"]
    )
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    assert [(row["layer"], row["side"]) for row in rows] == long_sequences.LAYERS
    for row in rows:
        assert row["forward"] > 0 and row["forward and backward"] > 0
        assert (row["steps"] is None) == (row["side"] == "encoder")
        assert {f"KiB per token, {length}" for length in (4, 8)} <= set(row)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_gradients_reach_the_input_and_every_weight(long_sequences, side):
    passes, causal = long_sequences.passes, side == "decoder"
    for name in long_sequences.NAMES:
        layer = long_sequences.layer(name, side, **SIZES)
        x, mask = passes.batch((2, 6, WIDTH), causal)
        upstream = keras.random.normal(x.shape, seed=2)
        found = passes.tensorflow_gradients(layer, causal)(x, mask, upstream)
        assert len(found) == 1 + len(layer.trainable_variables)
        assert all(np.asarray(gradient).any() for gradient in found)


def test_steps_are_those_of_the_last_position(long_sequences, monkeypatch):
    layer = long_sequences.layer("NeuralNgram", "decoder", **SIZES)
    positions, step = [], layer.step

    def recorded(x, position, state):
        positions.append(position)
        return step(x, position, state)

    monkeypatch.setattr(layer, "step", recorded)
    monkeypatch.setattr(
        long_sequences.passes.kav.backend, "jit", lambda function, xla: function
    )
    long_sequences.passes.steps(layer, (2, 1, WIDTH), 7, xla=False)()
    assert {int(position) for position in positions} == {7}
    assert len(positions) == long_sequences.passes.STEPS


def test_lengths_that_do_not_divide_are_refused(long_sequences):
    result = CliRunner().invoke(long_sequences.app, ["--short=3", "--long=8"])
    assert result.exit_code == 2
    assert "Received: 8, 3" in result.output
