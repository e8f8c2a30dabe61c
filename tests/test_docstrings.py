"""Docstrings begin with a noun or a verb, and so do descriptions of arguments."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import keras_attnvariants as kav

PACKAGE = Path(kav.__file__).parent

DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef

# "What a search returns." for "The hypotheses of a search."
OPENINGS = re.compile(r"(How|Of|That|What|Where) ")

# "seed: of the draws." for "seed: seed of the draws."
DESCRIPTIONS = re.compile(r" +[*`\w]+(, [*`\w]+)*: of ")


def wrong_docstrings(source: str) -> Iterator[str]:
    """The lines of docstrings that begin like an answer to a question."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED):
            first, *others = (ast.get_docstring(node) or "").split("\n")
            if OPENINGS.match(first):
                yield first
            yield from filter(DESCRIPTIONS.match, others)


@pytest.mark.parametrize("folder", kav._FOLDERS)
def test_docstrings_begin_with_a_noun_or_a_verb(folder):
    wrong = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        for line in wrong_docstrings(path.read_text("utf-8"))
    ]
    assert wrong == []


def test_a_wrong_docstring_is_found():
    source = '''
        """Of one file."""
        def f(seed):
            """What a search finds.

            Args:
                seed, other: of the draws.
                kind: one of two.
            """
    '''
    found = [
        line.strip() for line in wrong_docstrings(source.replace("\n        ", "\n"))
    ]
    assert found == [
        "Of one file.",
        "What a search finds.",
        "seed, other: of the draws.",
    ]
