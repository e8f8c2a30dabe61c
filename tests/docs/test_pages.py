"""README and docs: their Python runs, their links lead somewhere, GitHub shows them."""

import re

import pytest

from tests.docs import pages

EACH_PAGE = pytest.mark.parametrize(
    "page", pages.PAGES, ids=lambda page: str(page.relative_to(pages.REPOSITORY))
)

# Another test writes the files of this page and runs its commands.
TUTORIAL = pages.DOCS / "add_your_own_variant.md"


def test_the_readme_runs(capsys):
    names = pages.run(pages.README)
    assert names["attention"].count_params() == 2 * 64 * 64
    assert names["hypotheses"].ids.shape[:2] == (2, 1)
    assert re.search(r"^hc-sa \d+\.\d+ 0\.\d+$", capsys.readouterr().out, re.M)


@pytest.mark.parametrize(
    "page",
    [page for page in pages.PAGES if page not in (pages.README, TUTORIAL)],
    ids=lambda page: page.stem,
)
def test_a_page_runs(page):
    pages.run(page)


@EACH_PAGE
def test_relative_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


@EACH_PAGE
def test_links_to_sections_lead_to_their_headings(page):
    text = page.read_text("utf-8")
    for target, anchor in re.findall(r"\]\(([^)#:\s]*\.md)?#([^)]+)\)", text):
        lines = pages.FENCE.sub(
            "", (page.parent / target if target else page).read_text()
        )
        slugs = [pages.slug(x) for x in re.findall(r"^#+ (.+)$", lines, re.M)]
        assert anchor in slugs, (target, anchor)


@EACH_PAGE
def test_no_merge_was_left_undecided(page):
    lines = page.read_text("utf-8").splitlines()
    assert not [line for line in lines if line.startswith(("<<<<<<< ", ">>>>>>> "))]


def test_every_variant_has_a_page_with_its_picture_and_the_index_lists_it():
    from keras_attnvariants import attention

    variant_pages = sorted((pages.DOCS / "variants").glob("*.md"))
    index = (pages.DOCS / "README.md").read_text("utf-8")
    texts = {}
    for page in variant_pages:
        texts[page.stem] = page.read_text("utf-8")
        assert f"](variants/{page.name})" in index
        assert f"](../pictures/{page.stem}.png)" in texts[page.stem]
    for name in attention.variants():
        assert any(f"`kav.{name}` ·" in text for text in texts.values()), name


@EACH_PAGE
def test_equations_use_what_github_renders(page):
    text = page.read_text("utf-8")
    for equation in re.findall(r"\$\$(.+?)\$\$", text, re.S):
        # In Markdown, a backslash before punctuation is an escape.
        assert not re.search(r"\\[^A-Za-z\s]", equation), equation
        assert r"\operatorname" not in equation
        assert equation.count("{") == equation.count("}")
