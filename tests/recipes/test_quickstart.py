"""The quickstart on a small corpus, to its end and then once more."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from keras_attnvariants import presets
from tests.recipes.conftest import module_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning"),
]


@pytest.fixture
def recipe_module():
    """The recipe as a module."""
    return module_of("quickstart")


@pytest.fixture
def quickstart(recipe_module, corpus_folder, corpus_cache, run_folder, monkeypatch):
    """The recipe as a module, with a small corpus, preset and trained model."""
    small = presets.get("kav/hc-all/bible")
    sizes = {"vocabulary_size": 50, "num_layers": 1, "hidden_dim": 16, "num_heads": 2}
    small = replace(
        small,
        options={**small.options, **sizes},
        training=replace(small.training, batch_tokens=512),
    )
    monkeypatch.setattr(presets, "get", lambda name: small)
    monkeypatch.setenv("KAV_CACHE", str(corpus_cache))
    monkeypatch.setenv("COLUMNS", "200")
    module = recipe_module
    monkeypatch.setattr(module, "CORPUS", str(corpus_folder))
    monkeypatch.setattr(module, "SOURCE", "xx")
    monkeypatch.setattr(module, "TARGET", "yy")
    monkeypatch.setattr(module, "VALIDATE_EVERY", 5)
    monkeypatch.setattr(module, "WIDTH", 16)
    monkeypatch.setattr(module, "STEPS", 1000)
    monkeypatch.setattr(module, "READY", str(run_folder / "best"))
    monkeypatch.setattr(module, "SENTENCE", "be la")
    monkeypatch.setattr(module, "SIMPLE", ("be la", "la be"))
    return module


def test_quickstart(quickstart, corpus_folder, tmp_path):
    app = typer.Typer()
    app.command()(quickstart.main)
    folder, saved = tmp_path / "run", tmp_path / "saved"
    arguments = ["--minutes", "0.1", "--run", str(folder), "--output", str(saved)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "source       be la\ntranslation  " in result.stdout
    page = (tmp_path / "run.html").read_text("utf-8")
    assert page.startswith("<!doctype html>") and "<table>" in page
    assert all(f">{word}</span>" in page for word in ("be", "la"))
    sources = (corpus_folder / "test.xx").read_text().splitlines()
    for place in (0, 4, 8, 12, 16):
        assert f"source       {sources[place]}\n" in result.stdout
    assert result.stdout.count("translation  ") == 1 + 5
    assert "BLEU|" in result.stdout
    assert f"--saved-model {saved}" in result.stdout
    step = last_step(folder)
    assert 1 <= step < 1000  # the time was up
    assert f"Cost: {step} updates in 0." in result.stdout
    assert f"\n{step} updates gave " in result.stdout
    assert "should give about " in result.stdout
    assert "BLEU on 2 of the verses: yours" in result.stdout

    result = CliRunner().invoke(app, [*arguments, "--sentences", "5"])
    assert result.exit_code == 0, result.output
    assert last_step(folder) == step
    assert [path.name for path in sorted(saved.iterdir())] == ["1", "2"]


def test_the_score_is_foretold_when_the_pace_is_known(recipe_module, capsys):
    limit = SimpleNamespace(seconds=20.0, limit=840.0)
    forecast = recipe_module.Forecast(limit)
    expected = "0 updates gave 1.2 BLEU, where 0 should give about 1."
    assert forecast.compared(1.25) == expected
    forecast.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=0)))
    while limit.seconds < 100.0:
        forecast.model.optimizer.iterations += 1
        forecast.on_train_batch_end(0)
        limit.seconds += 0.5
    told = capsys.readouterr().out.replace("\n", " ")
    assert told.startswith("2.0 updates a second: about 1,5")
    assert forecast.updates == pytest.approx(1563.5)  # 91 + 2 * 0.95 * 775


def test_scores_lie_between_those_that_were_measured(recipe_module):
    *_, (updates, score) = recipe_module.MEASURED.items()
    assert updates == recipe_module.STEPS
    assert recipe_module.expected(10 * updates) == score
    found = [recipe_module.expected(n) for n in range(100, updates, 100)]
    assert found == sorted(found)


def last_step(folder) -> int:
    return json.loads((folder / "log.jsonl").read_text().splitlines()[-1])["step"]
