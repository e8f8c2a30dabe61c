"""The page as text: its contents, and their harmlessness."""

import base64
import dataclasses
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from keras_attnvariants.experiments.page import write_page
from tests.experiments import made_up

ROOT = Path(__file__).parents[3]
HOSTILE = (
    "</script><script>alert(1)</script>\u2028'\"&\u202e\0<img src=x onerror=alert(1)>"
)


class Page(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        last = self.elements[-1][0] if self.elements else ""
        (self.scripts if last == "script" else self.texts).append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def values(self, attribute: str) -> list[str]:
        return [found[attribute] for _, found in self.elements if attribute in found]


def read(result, path) -> tuple[str, Page]:
    write_page(result, path)
    text = path.read_text("utf-8")
    return text, Page(text)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return read(made_up.comparison(), tmp_path_factory.mktemp("page") / "page.html")


def test_links_stay_in_the_page(made):
    _, page = made
    links = [link for link in page.values("href") if not link.startswith("#")]
    assert links == [] and page.values("src") == []
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in page.values("href")} <= set(ids)
    assert {"analysis-locality", "attention", "translations", "origin"} <= set(ids)


def test_the_policy_allows_the_scripts_of_the_page_alone(made):
    text, page = made
    [policy] = [m["content"] for m in page.all("meta") if "http-equiv" in m]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for tag in ("script", "style"):
        for content in re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL):
            digest = hashlib.sha256(content.encode()).digest()
            assert base64.b64encode(digest).decode() in policy
    # The policy forbids them, so they would do nothing.
    assert page.values("style") == []
    assert not any(name.startswith("on") for _, a in page.elements for name in a)


def test_the_page_in_docs_is_of_this_version():
    """`python docs/comparisons/draw.py` draws it again."""
    text = (ROOT / "docs/comparisons/multi30k.html").read_text("utf-8")
    assets = ROOT / "keras_attnvariants/experiments/page/assets"
    for path in assets.iterdir():
        assert path.read_text("utf-8") in text, path


def test_all_parts_exist(made):
    text, page = made
    shown = "".join(page.texts).replace("\xa0", " ")
    for needed in (
        "Made up <for tests>",
        "sh-x has the best BLEU on test2016: 32.00",
        "two runs have not ended",
        "Heads of the first encoder layer look 1 or 2 tokens away.",
        "No paper reports it.",
        "kav compare comparison.toml --folder runs/comparison",
        "lstm 1, lstm 2",
        "On 2026-11-22 20:00:00 UTC",
        "keras_attnvariants",
        *made_up.SOURCES,
        *made_up.REFERENCES,
    ):
        assert needed in shown, needed
    # Names are marked, and figures are not broken.
    assert "<b>sh-x</b> has the best BLEU on test2016: 32.00&nbsp;±&nbsp;0.28" in text
    # Two at the top, two of differences, one over the budget, five of curves. Three
    # analyses of two systems and one of all have pictures for wide and narrow pages.
    assert text.count("<svg role=") == 2 + 2 + 1 + 5 + 2 * (3 * 2 + 1)


def test_an_analysis_without_rows_says_why(tmp_path):
    small = made_up.comparison()
    [first, *others] = small.analyses
    empty = dataclasses.replace(first, rows=(), note="n-grams have no weights")
    result = dataclasses.replace(small, analyses=(empty, *others))
    text, _ = read(result, tmp_path / "page.html")
    expected = f"<dt><bdi>{empty.system}</bdi></dt><dd>n-grams have no weights</dd>"
    assert text.count(expected) == 1


def test_text_that_looks_like_html_stays_text(tmp_path):
    small = made_up.comparison()
    renamed = {"hc-sa": f"hc{HOSTILE}"}

    def name(old: str) -> str:
        return renamed.get(old, old)

    def rename(rows):
        return tuple(
            dataclasses.replace(row, system=name(row.system), **extra(row))
            for row in rows
        )

    def extra(row):
        if hasattr(row, "finding"):
            return {"finding": HOSTILE, "definition": HOSTILE}
        return {"queries": (HOSTILE, *row.queries[1:])} if hasattr(row, "keys") else {}

    result = dataclasses.replace(
        small,
        title=HOSTILE,
        systems=tuple(
            dataclasses.replace(system, name=name(system.name), preset=HOSTILE)
            for system in small.systems
        ),
        runs=rename(small.runs),
        scores=rename(small.scores),
        differences=rename(small.differences),
        points=tuple(
            dataclasses.replace(p, scores=(), differences=rename(p.differences))
            for p in small.points
        ),
        analyses=rename(small.analyses),
        attention=rename(small.attention),
        samples=tuple(
            dataclasses.replace(
                sample,
                source=HOSTILE,
                reference=HOSTILE,
                translations={name(n): HOSTILE + n for n in sample.translations},
            )
            for sample in small.samples
        ),
        origin=dataclasses.replace(
            small.origin, command=HOSTILE, versions={HOSTILE: HOSTILE}
        ),
    )
    text, page = read(result, tmp_path / "page.html")
    assert page.all("img") == []
    assert [set(script) for script in page.all("script")] == [
        {"type", "id"},
        set(),
        set(),
        set(),
    ]
    assert "\0" not in text and "\u2028" not in json.dumps(page.scripts[0])
    data = json.loads(zlib.decompress(base64.b64decode(page.scripts[0])))
    # Characters that HTML cannot hold are replaced; JSON escapes them.
    assert [system["name"] for system in data] == ["base", f"hc{HOSTILE}", "sh-x"]
    assert data[0]["sentences"][0]["layers"][0]["queries"][0] == HOSTILE
    shown = HOSTILE.replace("\0", "\N{REPLACEMENT CHARACTER}")
    assert shown in " ".join(page.texts)


def test_what_is_not_there_is_left_out(tmp_path):
    small = made_up.comparison()
    parts = (
        "runs",
        "scores",
        "differences",
        "points",
        "analyses",
        "samples",
        "attention",
    )
    bare = dataclasses.replace(small, **dict.fromkeys(parts, ()))
    _, page = read(bare, tmp_path / "page.html")
    ids = page.values("id")
    assert "origin" in ids and "summary" in ids
    assert not {"curves", "analyses", "attention", "translations"} & set(ids)
    assert {link.removeprefix("#") for link in page.values("href")} <= set(ids)
    assert "There are no scores yet." in page.texts


def test_an_empty_translation_is_named(tmp_path):
    made_up_result = made_up.comparison()
    sample = made_up_result.samples[0]
    lost = dataclasses.replace(
        sample, translations={**sample.translations, "sh-x": " "}
    )
    result = dataclasses.replace(made_up_result, samples=(lost,))
    text, _ = read(result, tmp_path / "page.html")
    shown = text.split('class="sample"')[1]
    [sh_x] = re.findall(r"<dt><bdi>sh-x</bdi></dt><dd.*?</dd>", shown, re.DOTALL)
    assert sh_x.count("(empty)") == 2  # beside the reference, and the baseline
    assert text.count("(empty)") == 2


def test_fewer_sentences_make_a_smaller_page(made, tmp_path):
    text, _ = made
    write_page(made_up.comparison(), tmp_path / "page.html", sentences=1)
    reduced = (tmp_path / "page.html").read_text("utf-8")
    assert len(reduced) < len(text)
    assert reduced.count('class="sample"') == 1
