"""Links to files of the repository that are not pages: each file gets a page.

A list beside an equation in which every item links to code is shown with that code:
references in the left column, layers in the right one. See `code_links`.
"""

import html
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from docs.sphinx_parts import code_links

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = "source"


def setup(app: Any) -> dict[str, bool]:
    """Registers the transforms and the pages of files with Sphinx."""
    app.add_transform(CodeBesideEquations)
    app.add_transform(RepositoryLinks)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("html-collect-pages", file_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def forget(app: Any, env: Any, docname: str) -> None:
    """Forgets the files that a page linked to."""
    linked(env).pop(docname, None)


def merge(app: Any, env: Any, docnames: list[str], other: Any) -> None:
    """Takes over the files of pages that another process has read."""
    linked(env).update({name: linked(other).get(name, set()) for name in docnames})


def linked(env: Any) -> dict[str, set[str]]:
    """The files that each page links to, by their paths in the repository."""
    if not hasattr(env, "linked_files"):
        env.linked_files = {}
    return env.linked_files


def link_to(env: Any, path: Path, line: int = 0) -> str:
    """Notes a link of the page that is being read, and returns its address."""
    name = path.relative_to(REPOSITORY).as_posix()
    linked(env).setdefault(env.docname, set()).add(name)
    folder = posixpath.dirname(env.docname)
    address = posixpath.relpath(f"{FOLDER}/{name}.html", folder or ".")
    return f"{address}#line-{line}" if line else address


def target(env: Any, node: nodes.Element) -> Path | None:
    """The file or folder of the repository that a link names, unless it is a page.

    HTML files are copied instead of being shown as source.
    """
    name = node.get("reftarget", "")
    if node.get("reftype") != "myst" or node.get("refdomain") or not name:
        return None
    path = (REPOSITORY / env.docname).parent.joinpath(name.partition("#")[0])
    path = path.resolve()
    if path.suffix == ".html" or not path.exists():
        return None
    return path if path.is_relative_to(REPOSITORY) else None


class RepositoryLinks(SphinxTransform):
    """Points links to files of the repository to the pages of these files."""

    default_priority = 8  # before MyST looks for the targets among the pages

    def apply(self) -> None:
        kinds = addnodes.download_reference, addnodes.pending_xref
        for node in list(self.document.findall()):
            path = target(self.env, node) if isinstance(node, kinds) else None
            if path is not None:
                address = link_to(self.env, path)
                new = nodes.reference("", "", *node.children, refuri=address)
                new["internal"] = True
                node.replace_self(new)


class CodeBesideEquations(SphinxTransform):
    """Shows the code that the items of a list link to."""

    default_priority = 7

    def apply(self) -> None:
        for listed in list(self.document.findall(nodes.bullet_list)):
            if not all(is_link(item) for item in listed):
                continue
            columns = {"In NumPy": [], "In Keras": []}
            for item in listed:
                kind = re.match(r"In \w+", item.astext())[0]
                columns.setdefault(kind, []).append(self.panel(item))
            beside = nodes.container(classes=["beside"])
            for panels in filter(None, columns.values()):
                beside += nodes.container("", *panels)
            listed.replace_self(beside)

    def panel(self, item: nodes.list_item) -> nodes.container:
        """The text of an item, its link and its code."""
        [link] = item.findall(addnodes.download_reference)
        path = target(self.env, link)
        codes = [x.astext() for x in item.findall(nodes.literal)]
        try:
            found = code_links.excerpt(path, *codes)
        except ValueError as error:
            logging.getLogger(__name__).warning(str(error), location=item)
            return nodes.container("", *item.children)
        new = nodes.reference("", "", *link.children, internal=True)
        new["refuri"] = link_to(self.env, path, found.marked[0])
        link.replace_self(new)
        block = nodes.literal_block(found.text, found.text, language="python")
        marked = [line - found.first + 1 for line in found.marked]
        block["highlight_args"] = {"hl_lines": [x for x in marked if x > 0]}
        paragraph = item.children[0]
        if len(codes) > 1:
            # The code is shown below.
            del paragraph.children[paragraph.index(new) + 1 :]
        return nodes.container("", paragraph, block, classes=["panel"])


def is_link(item: nodes.list_item) -> bool:
    """Whether an item of a list is a link to code."""
    links = list(item.findall(addnodes.download_reference))
    return item.astext().startswith("In ") and len(links) == 1


def file_pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file or folder that pages link to."""
    for name in sorted(set().union(*linked(app.env).values())):
        path = REPOSITORY / name
        body = folder_body(path) if path.is_dir() else file_body(path)
        title = html.escape(name)
        context = {"title": title, "body": f"<h1>{title}</h1>\n{body}"}
        yield f"{FOLDER}/{name}", context, "page.html"


def file_body(path: Path) -> str:
    """The lines of a file with their numbers, to which links can point."""
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        lexer = TextLexer()
    style = HtmlFormatter(
        linenos="inline", lineanchors="line", anchorlinenos=True, cssclass="highlight"
    )
    return highlight(path.read_text("utf-8"), lexer, style)


def folder_body(path: Path) -> str:
    """A list of the files in a folder."""
    names = sorted(x.name for x in path.iterdir() if not x.name.startswith(("_", ".")))
    items = "".join(f"<li><code>{html.escape(name)}</code></li>" for name in names)
    return f"<ul>{items}</ul>"
