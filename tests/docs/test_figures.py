"""Every figure on the page that compares variants is in a section that it links."""

import re

import pytest

from tests.docs import pages

PAGE = pages.DOCS / "choosing.md"
LINK = re.compile(r"\[([^]]+)\]\(((?:RESULTS|PERFORMANCE|multi30k)\.md)#([^)]+)\)")
NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,.]*\d|(?<![\w.])\d")


def section(name: str, anchor: str) -> str:
    """The text of a section of a page."""
    parts = re.split(r"^(#+ .+)$", (pages.DOCS / name).read_text("utf-8"), flags=re.M)
    [found] = [
        text
        for head, text in zip(parts[1::2], parts[2::2], strict=True)
        if pages.slug(head.lstrip("# ")) == anchor
    ]
    return found


def has(text: str, number: str) -> bool:
    """Whether a number occurs in a text, with its sign if it has one."""
    return (
        re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", text) is not None
    )


def rows(head: str) -> list[list[str]]:
    """The cells of the table whose head begins with a text, head first."""
    lines = PAGE.read_text("utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(head))
    found = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return [found[0], *found[2:]]


def test_figures_of_models_are_in_the_rows_of_these_models():
    head, *models = rows("| model |")
    checked = 0
    for place, title in enumerate(head[1:], start=1):
        [(_, page, anchor)] = LINK.findall(title)
        lines = section(page, anchor).splitlines()
        for row in models:
            own = [x for x in lines if re.search(rf"[|/] ?{row[0]}(/\w+)? \|", x)]
            for number in NUMBER.findall(row[place]):
                assert any(has(line, number) for line in own), (row[0], title, number)
                checked += 1
    assert checked > 50


def test_figures_that_are_links_are_where_they_lead():
    text = PAGE.read_text("utf-8")
    links = [link for link in LINK.findall(text) if NUMBER.search(link[0])]
    assert len(links) > 10
    for label, page, anchor in links:
        for number in NUMBER.findall(label):
            if label.startswith("tokens per second"):
                continue  # of the head of the table: sizes of batches
            assert has(section(page, anchor), number), (label, number)


def test_other_figures_of_advice_are_in_a_section_of_their_row():
    for row in rows("| you want |")[1:]:
        cell = row[2]
        texts = [section(page, anchor) for _, page, anchor in LINK.findall(cell)]
        plain = LINK.sub("", cell)
        for number in NUMBER.findall(re.sub(r"\]\([^)]*\)", "", plain)):
            assert any(has(text, number) for text in texts), (cell, number)


def test_the_range_of_recurrences_has_all_of_them():
    makefile = (pages.REPOSITORY / "Makefile").read_text("utf-8")
    [names] = re.findall(r"^RECURRENCES := ((?:.*\\\n)*.*)", makefile, re.M)
    times = section("RESULTS.md", "time-of-a-training-step")
    ratios = [
        re.search(rf"^\| kav/{name}/\w+ \|.*\| (.+) \|$", times, re.M)[1]
        for name in names.replace("\\", "").split()
    ]
    assert len(ratios) == 9
    said = f"[{min(ratios)} to {max(ratios)}](RESULTS.md#time-of-a-training-step)"
    assert said in PAGE.read_text("utf-8")


@pytest.mark.parametrize("number", ["1.2", "25", "+0.1", "4,70"])
def test_a_part_of_a_figure_is_no_figure(number):
    assert not has("| base | 25.20 | 1.25 | +0.17 | 4,703 |", number)
