"""The tutorial, followed to the letter in a copy of the repository."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attention import matrix
from tests.docs import pages

PAGE = pages.DOCS / "add_your_own_variant.md"
COPIED = ("keras_attnvariants", "tests", "pyproject.toml")
# These commands make the environment, which exists: it runs this test.
PREPARE = ("make lint", "source .venv/bin/activate")
ROW = re.compile(r"^DecayingAverage +decoder +(\d+/.+)$", re.M)
# The files of the package that the page adds lines to, at its end.
ADDED = "keras_attnvariants/attention/__init__.py", "tests/reference/__init__.py"


@pytest.fixture
def clone(tmp_path) -> Path:
    """A copy of the repository, with the files of the page beside it."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in COPIED:
        source = pages.REPOSITORY / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / name)
    for block in pages.blocks(PAGE, "python"):
        if block.file not in ADDED:
            path = tmp_path / block.file
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text, "utf-8")
    return folder


def add_lines(folder: Path) -> None:
    """Adds the lines of the page to the files of the package."""
    for block in pages.blocks(PAGE, "python"):
        if block.file in ADDED:
            path = folder / block.file
            path.write_text(path.read_text("utf-8") + block.text, "utf-8")


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, and the output that the page shows for each."""
    parts = text.removeprefix("$ ").split("\n$ ")
    return [(command, said) for command, _, said in (p.partition("\n") for p in parts)]


def execute(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Runs a command, and returns what it prints."""
    shell = ["bash", "-c", command]
    result = subprocess.run(
        shell, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_every_block_has_a_file():
    assert all(block.file for block in pages.blocks(PAGE, "python"))


@pytest.mark.slow
def test_the_page_does_what_it_says(clone):
    bin_folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    checker = doctest.OutputChecker()
    outputs = []
    for block in pages.blocks(PAGE, "console"):
        if "every_variant" in block.text:
            add_lines(clone)
        for command, said in commands(block.text):
            if command.startswith(PREPARE):
                continue
            if command.startswith("export "):
                name, _, value = command.removeprefix("export ").partition("=")
                environment[name] = value
                continue
            printed = execute(command, clone, environment)
            assert checker.check_output(said, printed, pages.OPTIONS), printed
            outputs.append(printed)
    rows = ROW.findall("".join(outputs))
    beside, within = (row.split() for row in rows)  # the package
    assert len(beside) == len(within) == len(matrix.COLUMNS)
    assert set(within[2:]) == {"-"}  # the fast tests are in float32
    for passed, run in (cell.split("/") for cell in [*beside, *within[:2]]):
        assert passed == run and int(run) > 0, rows
    assert (clone / "saved_models" / "digits" / "1" / "saved_model.pb").is_file()
