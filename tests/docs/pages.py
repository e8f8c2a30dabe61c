"""Markdown pages as programs: their Python blocks, run as they are printed."""

import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "README.md"
DOCS = REPOSITORY / "docs"
PAGES = [README, REPOSITORY / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: after the fence.
        text: between the fences.
        line: number of lines before the text.
        file: where the reader saves it, if the line above it ends with that name.
    """

    language: str
    text: str
    line: int
    file: str = ""


def blocks(page: Path, language: str) -> Iterator[Block]:
    """The blocks of a page in one language, in order."""
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        if found[1] == language:
            before = text[: found.start()]
            named = re.search(r"`([^`\s]+)`:\n\n$", before)
            line = before.count("\n") + 1
            yield Block(language, found[2], line, named[1] if named else "")


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and MyST make it."""
    text = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


def run(page: Path) -> dict[str, Any]:
    """Runs all Python of a page and returns the names that it defines.

    Blocks share their names. A block with prompts must print the output that it shows.
    """
    names: dict[str, Any] = {}
    for block in blocks(page, "python"):
        if ">>>" in block.text:
            check_prompts(page, block, names)
        else:
            code = compile("\n" * block.line + block.text, str(page), "exec")
            exec(code, names)  # noqa: S102
    return names


def check_prompts(page: Path, block: Block, names: dict[str, Any]) -> None:
    """Runs a block with prompts and compares what it prints."""
    where = str(page.relative_to(REPOSITORY))
    test = doctest.DocTestParser().get_doctest(
        block.text, names, where, where, block.line
    )
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)
    names.update(test.globs)
