"""Docstrings begin with a noun or a verb, and so do descriptions of arguments."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import keras_attnvariants as kav

PACKAGE = Path(kav.__file__).parent
REPOSITORY = Path(__file__).parents[1]

FOLDERS = [PACKAGE / folder for folder in kav._FOLDERS] + [
    REPOSITORY / folder for folder in ("benchmarks", "docs", "recipes", "tests")
]

DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef

# "What a search returns." for "The hypotheses of a search."
OPENINGS = re.compile(r"(How|Of|That|What|Where|Which|Why) ")

# "seed: of the draws." for "seed: seed of the draws."
DESCRIPTIONS = re.compile(r" +[*`\w]+(, [*`\w]+)*: (of|that) ")

# `help="of the draws"` for `help="seed of the draws"`.
HELP = re.compile(r"(of|that) ", re.IGNORECASE)


def wrong_docstrings(source: str) -> Iterator[str]:
    """Lines that begin like an answer to a question, in docstrings and help texts."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED):
            first, *others = (ast.get_docstring(node) or "").split("\n")
            if OPENINGS.match(first):
                yield first
            yield from filter(DESCRIPTIONS.match, others)
        for value in help_texts(node):
            text = ast.unparse(value).strip("'\"")
            if HELP.match(text):
                yield text


def help_texts(node: ast.AST) -> list[ast.expr]:
    """The help text of an option of a script, or of one of `kav`."""
    if isinstance(node, ast.keyword) and node.arg == "help":
        return [node.value]
    is_option = isinstance(node, ast.Call) and ast.unparse(node.func) == "option"
    return node.args[:1] if is_option else []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_docstrings_begin_with_a_noun_or_a_verb(folder):
    wrong = [
        f"{path.relative_to(folder)}: {line.strip()}"
        for path in sorted(folder.rglob("*.py"))
        if "site-packages" not in path.parts  # of the benchmarks' environments
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
                third: that is drawn.
                kind: one of two.
            """
            parser.add_argument("--seed", help="of the draws")
            seed = option("Of the draws.", 1)
    '''
    found = [
        line.strip() for line in wrong_docstrings(source.replace("\n        ", "\n"))
    ]
    assert found == [
        "Of one file.",
        "What a search finds.",
        "seed, other: of the draws.",
        "third: that is drawn.",
        "Of the draws.",
        "of the draws",
    ]
