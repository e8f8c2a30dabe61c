"""Each room imports only rooms that come before it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import keras_attnvariants as kav

PACKAGE = Path(kav.__file__).parent


def imported_rooms(path: Path) -> Iterator[str]:
    """The rooms that a module imports, also within functions."""
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


def test_rooms_import_rooms_before_them():
    rooms = list(kav._ROOMS)
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for number, room in enumerate(rooms)
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for name in imported_rooms(path)
        if name in rooms[number + 1 :]
    ]
    assert wrong == []


def test_every_folder_is_a_room():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(kav._ROOMS)
