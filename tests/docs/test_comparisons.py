"""The presets of docs/comparisons/one_sublayer.py."""

import runpy
import tomllib
from pathlib import Path

import pytest

from keras_attnvariants import presets
from keras_attnvariants.presets import registry

FOLDER = Path(__file__).parents[2] / "docs" / "comparisons"


@pytest.fixture
def registered(monkeypatch):
    """Registers the presets for the time of a test."""
    monkeypatch.setattr(registry, "_presets", dict(registry._presets))
    runpy.run_path(str(FOLDER / "one_sublayer.py"))


def hard_coded(preset):
    return {
        (place, number)
        for place in ("encoder", "decoder", "cross")
        for number, layer in enumerate(preset.config[f"{place}_attention"], start=1)
        if "HardCoded" in layer["class_name"]
    }


def test_each_preset_has_the_layers_of_its_name_hard_coded(registered):
    systems = tomllib.loads((FOLDER / "one-sublayer.toml").read_text())["systems"]
    names = sorted(systems.keys() - {"base", "passed"})
    assert len(names) == 12
    for name in names:
        place, number = name.split("-")
        preset = presets.get(systems[name]["preset"])
        assert hard_coded(preset) == {(place, int(number))}
    assert len(hard_coded(presets.get("kav/passed/multi30k"))) == 6
