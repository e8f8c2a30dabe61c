"""Runs recipes as a reader would: as programs with arguments."""

import importlib.util
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import keras
import pytest

RECIPES = Path(__file__).resolve().parents[2] / "recipes"


def module_of(name: str) -> ModuleType:
    """A recipe as a module, since recipes are not part of a package."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, RECIPES / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


# Recipes import each other from their own folder.
for name in ("model_cards", "card_figures"):
    module_of(name)


@pytest.fixture
def recipe(monkeypatch, capsys, corpus_cache) -> Callable[..., str]:
    """Runs a recipe in this process and returns what it prints."""
    monkeypatch.setenv("KAV_CACHE", str(corpus_cache))
    policy = keras.config.dtype_policy()

    def run(name: str, *arguments) -> str:
        path = str(RECIPES / name)
        monkeypatch.setattr(sys, "argv", [path, *map(str, arguments)])
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as stop:
            assert not stop.code, capsys.readouterr().err
        finally:
            keras.config.set_dtype_policy(policy)
        return capsys.readouterr().out

    return run
