"""Links from pages to code by the names of objects, which are looked up in the sources.

Beside an equation, a page lists what computes it:

    - In NumPy, [`linear_attention`](../../tests/reference/linear.py): `row = …`
    - In Keras, [`LinearAttention.attend`](../../…/attention/linear.py): `sums = …`

The code after the colon is one line of the object, or its beginning. Pages have no line
numbers that could become wrong.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LINK = re.compile(
    r"\[`(?P<name>[\w.]+)`\]\((?P<target>[^)#\s]+\.py)\)(?::\s+`(?P<code>[^`\n]+)`)?"
)


@dataclass(frozen=True)
class Excerpt:
    """A part of a source file.

    Attributes:
        path: the file.
        first, last: its lines, counted from 1.
        marked: the lines that compute the equation; the link leads to the first one.
    """

    path: Path
    first: int
    last: int
    marked: tuple[int, ...]

    @property
    def text(self) -> str:
        """The lines without their common indentation."""
        lines = self.path.read_text("utf-8").splitlines()[self.first - 1 : self.last]
        margin = min(len(x) - len(x.lstrip()) for x in lines if x.strip())
        return "\n".join(line[margin:] for line in lines)


def links(page: Path) -> Iterator[tuple[str, Path, str | None]]:
    """The names, files and quoted code of the links in a page."""
    for found in LINK.finditer(page.read_text("utf-8")):
        path = (page.parent / found["target"]).resolve()
        yield found["name"], path, found["code"]


def excerpt(path: Path, name: str, code: str | None = None) -> Excerpt:
    """The statement of an object that begins with some code, and the lines around it.

    Without code, the whole object.

    Raises:
        ValueError: the file has no such object, or not one such line in it.
    """
    node = find(path, name)
    begin = node.body[0].lineno
    if ast.get_docstring(node) is not None:
        begin = node.body[0].end_lineno + 1
    last = node.end_lineno
    if begin > last:  # it has a docstring only
        return Excerpt(path, node.lineno, last, (node.lineno,))
    if code is None:
        return Excerpt(path, begin, last, (node.lineno,))
    lines = path.read_text("utf-8").splitlines()
    places = [
        n for n in range(begin, last + 1) if lines[n - 1].strip().startswith(code)
    ]
    if len(places) != 1:
        raise ValueError(
            f"{name} in {path.name} has {len(places)} lines that begin with {code!r}, "
            "and must have one"
        )
    marked = statement(node, places[0])
    around = max(begin, marked[0] - 5), min(last, marked[-1] + 3)
    return Excerpt(path, *around, marked)


def find(path: Path, name: str) -> ast.FunctionDef | ast.ClassDef:
    """The function, class or method with a name, such as `Layer.call`.

    Raises:
        ValueError: the file has none.
    """
    node: ast.AST = ast.parse(path.read_text("utf-8"))
    for part in name.split("."):
        inner = (x for x in node.body if getattr(x, "name", None) == part)
        node = next(inner, None)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            raise ValueError(f"{path.name} has no function or class {name}")
    return node


def statement(node: ast.AST, line: int) -> tuple[int, ...]:
    """The lines of the smallest statement at a line; of a block, that line alone."""
    found = [
        x
        for x in ast.walk(node)
        if isinstance(x, ast.stmt) and x.lineno <= line <= x.end_lineno
    ]
    smallest = min(found, key=lambda x: x.end_lineno - x.lineno)
    if hasattr(smallest, "body"):
        return (line,)
    return tuple(range(smallest.lineno, smallest.end_lineno + 1))
