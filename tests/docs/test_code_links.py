"""Code beside equations: the objects exist, and have the lines that are quoted."""

import re

import pytest

from docs.sphinx_parts import code_links
from tests.docs import pages

VARIANTS = sorted((pages.DOCS / "variants").glob("*.md"))
EQUATION = re.compile(r"^\$\$\n.+?\n\$\$\n", re.M | re.S)
LISTED = re.compile(r"- In (NumPy|Keras)(?:, [^\[]+)?: \[`")


@pytest.mark.parametrize("page", VARIANTS, ids=lambda page: page.stem)
def test_every_equation_has_its_reference_and_its_layer_beside_it(page):
    text = page.read_text("utf-8")
    equations = list(EQUATION.finditer(text))
    assert equations
    for equation in equations:
        listed, _, _ = text[equation.end() :].lstrip("\n").partition("\n\n")
        lines = listed.splitlines()
        kinds = [found[1] for found in map(LISTED.match, lines) if found]
        assert len(kinds) == len(lines), listed
        assert set(kinds) == {"NumPy", "Keras"}, listed


@pytest.mark.parametrize("page", VARIANTS, ids=lambda page: page.stem)
def test_the_code_is_where_the_page_says(page):
    text = page.read_text("utf-8")
    links = list(code_links.links(page))
    assert len(links) >= len(LISTED.findall(text)) > 1
    for name, path, code in links:
        found = code_links.excerpt(path, name, code)
        source = path.read_text("utf-8").splitlines()
        if code is not None:
            marked = [source[line - 1].strip() for line in found.marked]
            assert any(line.startswith(code) for line in marked)
        assert found.first <= found.last and found.text


SOURCE = '''
class Layer:
    """A layer."""

    def call(self, x):
        """Returns twice the input."""
        y = 2 * x
        return add(
            y,
            0,
        )


def call(x):
    return add(x, x)
'''


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.py"
    path.write_text(SOURCE, "utf-8")
    return path


def test_a_method_is_found_by_its_name_and_its_statement_by_its_beginning(source):
    found = code_links.excerpt(source, "Layer.call", "return add(")
    assert found.marked == (8, 9, 10, 11)
    assert found.text.startswith("y = 2 * x\nreturn add(")
    assert code_links.excerpt(source, "call", "return add(").marked == (15,)


def test_lines_may_move_and_must_not_change(source):
    source.write_text("\n\n" + SOURCE, "utf-8")
    assert code_links.excerpt(source, "call", "return add(x").marked == (17,)
    with pytest.raises(ValueError, match="0 lines"):
        code_links.excerpt(source, "call", "return add(y")
    with pytest.raises(ValueError, match="no function or class Layer.build"):
        code_links.excerpt(source, "Layer.build")


def test_a_line_that_is_there_twice_is_refused(source):
    with pytest.raises(ValueError, match="has 2 lines"):
        code_links.excerpt(source, "Layer", "y")
