"""Trained models by name: those of the package, folders, and unknown names."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import keras_attnvariants as kav
from keras_attnvariants.trained import names

NAME = "kav/toy/reversed-xx-yy"


@pytest.fixture(scope="module")
def box(run_folder, tmp_path_factory):
    """A folder of packed models, as the package has one."""
    folder = tmp_path_factory.mktemp("models")
    model, tokenizer = kav.load_model(run_folder / "best")
    kav.save_model(model, folder / NAME, tokenizer, packed=True)
    return folder


@pytest.fixture
def boxed(box, monkeypatch):
    """The same in the place of the models in the package."""
    monkeypatch.setattr(names, "MODELS", box)
    return box


def test_names_are_those_of_the_folders(boxed):
    (boxed / "kav" / "not a model").mkdir(exist_ok=True)
    assert names.model_names() == [NAME]
    assert names.find_model(NAME) == boxed / NAME


def test_a_folder_comes_before_a_name(boxed, run_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run_folder / "averaged", tmp_path / NAME)
    assert kav.load_model(NAME).model.name == "averaged"
    monkeypatch.chdir(run_folder)
    assert kav.load_model(NAME).model.name == "best"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("kav/toy/reversed-yy-xx", f"Did you mean '{NAME}'?"),
        ("kav/toi/reversed", f"Did you mean '{NAME}'?"),
        ("other", f"Known: '{NAME}'."),
        ("kav/../kav/toy/reversed-xx-yy", "'kav/toy/reversed-xx-yy'"),
        ("../models", "Known: "),
        ("x" * 5000, "Known: "),
        ("a\0b", "Known: "),
    ],
)
def test_a_name_of_none_gets_the_nearest(boxed, name, hint):
    with pytest.raises(FileNotFoundError) as error:
        kav.load_model(name)
    assert hint in str(error.value)
    assert str(error.value).startswith("`name` must be a folder that exists, ")
    assert str(error.value).endswith(f"Received: {name!r}")


def test_a_damaged_model_of_the_package_is_refused(box, tmp_path, monkeypatch):
    shutil.copytree(box, tmp_path / "models")
    path = tmp_path / "models" / NAME / "model.weights.h5"
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    monkeypatch.setattr(names, "MODELS", tmp_path / "models")
    with pytest.raises(ValueError, match=r"model\.weights\.h5 is not what was written"):
        kav.load_model(NAME)


def test_a_translator_by_name(boxed):
    translator = kav.Translator.from_preset(NAME, beam_size=2, max_length=5)
    assert translator.beam_size == 2
    texts = ["abe dik", ""]
    assert translator(texts) == translator.translate(texts)
    with pytest.raises(FileNotFoundError, match="Received: 'nothing'"):
        kav.Translator.from_preset("nothing")


def test_it_translates_without_code_for_training(box):
    code = (
        "import sys\n"
        "import keras_attnvariants as kav\n"
        "from keras_attnvariants.trained import names\n"
        f"names.MODELS = names.Path({os.fspath(box)!r})\n"
        f"kav.Translator.from_preset({NAME!r}, max_length=4)(['abe'])\n"
        "folders = {n.split('.')[1] for n in sys.modules if n.startswith("
        "'keras_attnvariants.')}\n"
        "import json; print(json.dumps(sorted(folders)))\n"
        "assert not {'kagglehub', 'keras_attnvariants.trained.hubs'} & {*sys.modules}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    zoo = {"utils", *kav.FLOORS["zoo"]}
    assert {*json.loads(done.stdout)} <= zoo | {"data", "trained"}
