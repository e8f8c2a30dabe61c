"""The scripts of docs/comparisons."""

import gzip
import runpy
import subprocess
import sys
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


def over_seeds(folder, *arguments):
    command = [sys.executable, FOLDER / "over_seeds.py", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stdout, done.stderr


def write_accuracy(path, human, machine):
    lines = ("category,score,accuracy", f"x.human,sum,{human}", f"x.mt,sum,{machine}")
    path.write_text("\n".join(lines))


def test_over_seeds_means_with_intervals(tmp_path):
    write_accuracy(tmp_path / "base-1.csv", 40, 50)
    write_accuracy(tmp_path / "base-2.csv", 50, 60)
    write_accuracy(tmp_path / "other-1.csv", 70, 80)
    table, errors = over_seeds(
        tmp_path, "contrastive", "base=base-*.csv", "other=other-*.csv"
    )
    # Student's t for one degree of freedom is 12.706, the standard error 5.
    expected = "| x, sum | 50.00 (-13.53 to 113.53) | 75.00 |"
    assert table.splitlines() == ["|  | base | other |", "|---|---|---|", expected]
    assert not errors


def test_over_seeds_differences_of_one_system_have_students_interval(tmp_path):
    for seed, values in enumerate([(40, 50), (50, 60), (41, 53)], start=1):
        write_accuracy(tmp_path / f"base-{seed}.csv", *values)
        write_accuracy(tmp_path / f"other-{seed}.csv", *(x + 7 for x in values))
    table, _ = over_seeds(
        tmp_path, "contrastive", "base=base-*", "other=other-*", "--differences"
    )
    # Seeds 45, 55, 47: deviation 5.2915, t 2.7764 for four degrees, sqrt(2 / 3).
    cell = table.splitlines()[2].split(" | ")[2]
    assert cell.startswith("+7.00 (-5.0") and "to +19.0" in cell


def test_over_seeds_refuses_a_pattern_without_files(tmp_path):
    _, errors = over_seeds(tmp_path, "locality", "base=none-*.csv")
    assert errors == "No file matches 'none-*.csv'.\n"


def test_lower_cased_moses_tokens(tmp_path):
    pytest.importorskip("sacremoses")
    texts = {
        "en": "It's A dog\u2019s “bone”\n\nB & C\n",
        "de": "Ein Hund.\n\nZ.B. so\n",
    }
    (tmp_path / "data").mkdir()
    for language, text in texts.items():
        with gzip.open(
            tmp_path / f"data/train.{language}.gz", "wt", newline="\n"
        ) as file:
            file.write(text)
    script = [
        sys.executable,
        FOLDER / "lower_cased.py",
        "data",
        "runs/lower",
        "en",
        "de",
    ]
    subprocess.run(script, cwd=tmp_path, check=True)
    found = [
        gzip.open(tmp_path / f"runs/lower/train.{language}.gz", "rt").read()
        for language in texts
    ]
    assert found == [
        "it 's a dog 's \" bone \"\n\nb & c\n",
        "ein hund .\n\nz.b. so\n",
    ]
