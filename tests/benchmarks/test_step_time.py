"""The benchmark of training steps: its arithmetic, and a run at tiny size."""

import json

import pytest
from typer.testing import CliRunner


@pytest.fixture
def step_time(benchmark):
    return benchmark("step_time")


def test_a_ratio_is_the_median_over_rounds(step_time):
    name = "kav/context/multi30k"
    seconds = {step_time.BASELINE: [1.0, 2.0, 4.0], name: [3.0, 2.0, 8.0]}
    first, second = step_time.ratios(seconds, 128, step_time.Mode.BFLOAT16)
    assert first == {
        "preset": step_time.BASELINE,
        "mode": "bfloat16",
        "milliseconds": 2000.0,
        "ratio": 1.0,
        "bar": None,
    }
    assert second == {
        "preset": name,
        "mode": "bfloat16",
        "milliseconds": 3000.0,
        "ratio": 2.0,
        "bar": 1.3,
    }


def test_an_update_changes_the_model(step_time, monkeypatch):
    import keras

    from keras_attnvariants import presets

    models = []
    compile = keras.Model.compile

    def remember(model, *arguments, **options):
        models.append(model)
        compile(model, *arguments, **options)

    monkeypatch.setattr(keras.Model, "compile", remember)
    sizes = {"vocabulary_size": step_time.VOCABULARY, "num_layers": 1}
    batch = step_time.full_batch(2, 4)
    preset = presets.get(step_time.BASELINE)
    update = step_time.trainer(preset, sizes, batch, step_time.Mode.FLOAT32)
    update()
    update()
    assert int(models[0].optimizer.iterations) == 2


def test_baseline_runs_twice_beside_the_others(step_time, tmp_path):
    file = tmp_path / "numbers.json"
    sizes = {"width": 8, "layers": 1, "batch": 2, "length": 3, "runs": 2}
    options = [f"--{name}={value}" for name, value in sizes.items()]
    modes = ["float32", "bfloat16"]
    options += [f"--mode={mode}" for mode in modes]
    result = CliRunner().invoke(
        step_time.app, ["kav/hc-sa/multi30k", *options, f"--output={file}"]
    )
    assert result.exit_code == 0, result.output
    rows = [
        (row["preset"], row["mode"]) for row in json.loads(file.read_text())["rows"]
    ]
    names = [step_time.BASELINE, step_time.AGAIN, "kav/hc-sa/multi30k"]
    assert rows == [(name, mode) for mode in modes for name in names]
    for name in names:
        assert name in result.output
