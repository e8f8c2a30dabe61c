"""The quickstart on a small corpus, to its end and then once more."""

import importlib.util
import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from keras_attnvariants import presets
from tests.recipes.conftest import RECIPES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning"),
]


@pytest.fixture
def quickstart(corpus_folder, corpus_cache, monkeypatch):
    """The recipe as a module, with a small corpus and a small preset."""
    small = presets.get("kav/hc-all/bible")
    sizes = {"vocabulary_size": 50, "num_layers": 1, "hidden_dim": 16, "num_heads": 2}
    small = replace(
        small,
        options={**small.options, **sizes},
        training=replace(small.training, batch_tokens=512, steps=1000),
    )
    monkeypatch.setattr(presets, "get", lambda name: small)
    monkeypatch.setenv("KAV_CACHE", str(corpus_cache))
    monkeypatch.setenv("COLUMNS", "200")
    path = RECIPES / "quickstart.py"
    spec = importlib.util.spec_from_file_location("quickstart", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "CORPUS", str(corpus_folder))
    monkeypatch.setattr(module, "SOURCE", "xx")
    monkeypatch.setattr(module, "TARGET", "yy")
    monkeypatch.setattr(module, "VALIDATE_EVERY", 5)
    return module


def test_quickstart(quickstart, corpus_folder, tmp_path):
    app = typer.Typer()
    app.command()(quickstart.main)
    folder, saved = tmp_path / "run", tmp_path / "saved"
    arguments = ["--minutes", "0.1", "--run", str(folder), "--output", str(saved)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    sources = (corpus_folder / "test.xx").read_text().splitlines()
    for place in (0, 4, 8, 12, 16):
        assert f"source       {sources[place]}\n" in result.stdout
    assert result.stdout.count("translation  ") == 5
    assert "BLEU|" in result.stdout
    assert f"--saved-model {saved}" in result.stdout
    step = last_step(folder)
    assert 1 <= step < 1000  # the time was up

    result = CliRunner().invoke(app, [*arguments, "--sentences", "5"])
    assert result.exit_code == 0, result.output
    assert last_step(folder) == step
    assert [path.name for path in sorted(saved.iterdir())] == ["1", "2"]


def last_step(folder) -> int:
    return json.loads((folder / "log.jsonl").read_text().splitlines()[-1])["step"]
