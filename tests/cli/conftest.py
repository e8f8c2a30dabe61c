"""The recipes as modules, a way to run them, and a corpus of reversed sentences."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
NAMES = sorted(path.stem for path in RECIPES.glob("*.py"))


@pytest.fixture
def recipe(monkeypatch) -> Callable:
    """Imports a module of the recipes as a script there would."""
    monkeypatch.syspath_prepend(str(RECIPES))
    yield importlib.import_module
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.fixture
def run(recipe, monkeypatch, tmp_path_factory) -> Callable:
    """Runs a recipe in this process: its name, its arguments, its standard input."""
    cache = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("KAV_CACHE", str(cache))
    monkeypatch.setenv("COLUMNS", "200")

    def run(name: str, *arguments, input: str | None = None):
        arguments = [str(argument) for argument in arguments]
        return CliRunner().invoke(recipe(name).app, arguments, input=input)

    return run


@pytest.fixture(scope="session")
def corpus_folder(tmp_path_factory) -> Path:
    """A language of made-up words (xx), and the same read backwards (yy)."""
    folder = tmp_path_factory.mktemp("reversed")
    rng = np.random.default_rng(8)
    letters = list("abdeiklmnorstu")
    words = ["".join(rng.choice(letters, rng.integers(2, 6))) for _ in range(40)]
    for split, count in (("train", 600), ("validation", 20), ("test", 20)):
        lines = [rng.choice(words, rng.integers(1, 6)).tolist() for _ in range(count)]
        for language, step in (("xx", 1), ("yy", -1)):
            text = "".join(" ".join(line[::step]) + "\n" for line in lines)
            (folder / f"{split}.{language}").write_text(text, "utf-8")
    return folder
