"""The site, without Sphinx: pages, cards, inventories and the check of its links."""

import importlib
import re

import pytest

from docs.sphinx_parts import check_site
from docs.sphinx_parts import inventories
from tests.docs import pages

INDEX = pages.DOCS / "index.md"


def test_every_page_is_in_the_navigation():
    text = INDEX.read_text("utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.M | re.S)
    listed = set()
    for tree in trees:
        for line in filter(None, tree.splitlines()):
            name = re.search(r"<(.+)>", line)
            if not line.startswith(":"):
                listed |= set(pages.DOCS.glob(f"{name[1] if name else line}.md"))
    shown = {path for path in pages.DOCS.rglob("*.md") if path != INDEX}
    assert {path.resolve() for path in listed} >= shown
    assert pages.README in {path.resolve() for path in listed}


@pytest.mark.parametrize("project", ["python", "keras"])
def test_names_of_inventories_are_names_of_the_libraries(project):
    for name in inventories.names()[project]:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module or "builtins"), attribute), name


def test_inventories_are_written_in_the_form_of_sphinx(tmp_path):
    mapping = inventories.write(tmp_path)
    assert mapping["keras"] == ("https://keras.io/api", str(tmp_path / "keras.inv"))
    data = (tmp_path / "python.inv").read_bytes()
    assert data.startswith(b"# Sphinx inventory version 2\n# Project: python\n")


def test_links_of_a_site_are_checked(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html#there">b</a> <a href="#here">a</a>'
        '<a href="https://example.org/x">elsewhere</a> <img src="c.png">'
    )
    (tmp_path / "b.html").write_text('<script src="https://example.org/s.js"></script>')
    assert sorted(check_site.mistakes(tmp_path)) == [
        "a.html leads to b.html#there, which has no such anchor",
        "a.html leads to c.png, which is not there",
        "b.html loads https://example.org/s.js",
    ]
    (tmp_path / "b.html").write_text('<p id="there">')
    (tmp_path / "c.png").write_bytes(b"")
    assert check_site.mistakes(tmp_path) == []
