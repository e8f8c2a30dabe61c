"""Folders import only from folders above them, and floors only from floors above."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import keras_attnvariants as kav

PACKAGE = Path(kav.__file__).parent


def imported_folders(path: Path) -> Iterator[str]:
    """The folders of the package that a module imports, also within functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == kav.__name__ and rest:
                yield rest.split(".")[0]


def wrong_imports(folder: str, allowed: set[str]) -> list[str]:
    """The imports of other folders than these, as lines of a report."""
    others = set(kav._FOLDERS) - allowed
    return [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        for name in imported_folders(path)
        if name in others
    ]


def test_folders_import_folders_above_them():
    folders = kav._FOLDERS
    wrong = [
        line
        for number, folder in enumerate(folders)
        for line in wrong_imports(folder, allowed=set(folders[: number + 1]))
    ]
    assert wrong == []


@pytest.mark.parametrize("name", kav.FLOORS["zoo"])
def test_the_zoo_stands_alone(name):
    allowed = {"utils", *kav.FLOORS["zoo"]}
    assert wrong_imports(name, allowed) == []


def test_an_import_of_a_lower_floor_is_found(tmp_path, monkeypatch):
    module = tmp_path / "models" / "late.py"
    module.parent.mkdir()
    module.write_text("def f():\n    from keras_attnvariants.data import Tokenizer\n")
    monkeypatch.setattr("tests.test_floors.PACKAGE", tmp_path)
    allowed = {"utils", *kav.FLOORS["zoo"]}
    assert wrong_imports("models", allowed) == ["models/late.py imports data"]


def test_every_folder_is_on_a_floor():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(kav._FOLDERS)
