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
    first, second = step_time.ratios(seconds, length=128)
    assert first == {
        "preset": step_time.BASELINE,
        "milliseconds": 2000.0,
        "ratio": 1.0,
        "bar": None,
    }
    assert second == {
        "preset": name,
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
    update = step_time.trainer(preset, sizes, batch, jit=False)
    update()
    update()
    assert int(models[0].optimizer.iterations) == 2


def test_baseline_runs_twice_beside_the_others(step_time, tmp_path):
    file = tmp_path / "numbers.json"
    sizes = {"width": 8, "layers": 1, "batch": 2, "length": 3, "runs": 2}
    options = [f"--{name}={value}" for name, value in sizes.items()]
    result = CliRunner().invoke(
        step_time.app, ["kav/hc-sa/multi30k", *options, "--no-jit", f"--output={file}"]
    )
    assert result.exit_code == 0, result.output
    names = [row["preset"] for row in json.loads(file.read_text())["rows"]]
    assert names == [step_time.BASELINE, step_time.AGAIN, "kav/hc-sa/multi30k"]
    for name in names:
        assert name in result.output
