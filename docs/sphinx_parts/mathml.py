"""Equations as MathML, which browsers render without scripts or fonts."""

import re
import unicodedata
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

# Commands that GitHub and MathJax know, and docutils does not.
COMMANDS = {r"\lt": "<", r"\gt": ">"}


def setup(app: Any) -> dict[str, bool]:
    """Registers the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mathml(latex: str, display: bool) -> str:
    """The MathML of an equation."""
    for command, character in COMMANDS.items():
        latex = latex.replace(command + " ", character + " ")
    # Otherwise, an index would stand below the letter with the hat.
    latex = re.sub(r"\\hat (\w)", lambda found: with_hat(found[1]), latex)
    return tex2mathml(latex, as_block=display)


def with_hat(letter: str) -> str:
    """A letter with a circumflex, as one character."""
    return unicodedata.normalize("NFC", letter + "\N{COMBINING CIRCUMFLEX ACCENT}")


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Writes an equation in a line."""
    translator.body.append(mathml(node.astext(), display=False))
    raise nodes.SkipNode


def visit_display(translator: Any, node: nodes.math_block) -> None:
    """Writes an equation of its own, which scrolls where it is wider than the page."""
    equation = mathml(node.astext(), display=True)
    translator.body.append(f'<div class="equation">{equation}</div>\n')
    raise nodes.SkipNode
