"""The directive `gallery`: a card for every page of a variant, read from that page."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

VARIANTS = Path(__file__).resolve().parents[1] / "variants"
# The most general one first, whole models last.
FIRST, LAST = "dot_product", "seq2seq_lstm"


def setup(app: Any) -> dict[str, bool]:
    """Registers the directive with Sphinx."""
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


@dataclass(frozen=True)
class Card:
    """The top of a page of a variant.

    Attributes:
        name: name of the page, and of its picture.
        title: its heading.
        places: roles of the variant: encoder, decoder, cross.
        sentence: the first sentence of the description, without its markup.
    """

    name: str
    title: str
    places: str
    sentence: str


def cards() -> list[Card]:
    """The cards of all pages, in the order in which they are shown."""
    found = [card(path) for path in VARIANTS.glob("*.md")]
    order = {FIRST: 0, LAST: 2}
    return sorted(found, key=lambda x: (order.get(x.name, 1), x.title))


def card(path: Path) -> Card:
    """The card of a page."""
    title, *paragraphs = path.read_text("utf-8").split("\n\n")
    heads = [x for x in paragraphs[:3] if x.startswith("`kav.")]
    text = " ".join(paragraphs[len(heads)].split())
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text).replace("`", "")
    text = re.sub(r"\$\\?(\w+)\$", r"\1", text)
    sentence = re.match(r".+?[.:](?= |$)", text)[0].rstrip(".:")
    places = heads[0].split(" · ")[1]
    return Card(path.stem, title.removeprefix("# "), places, sentence)


class Gallery(SphinxDirective):
    """Shows a picture, the title and a sentence of every variant."""

    def run(self) -> list[nodes.Node]:
        gallery = nodes.container(classes=["gallery"])
        for each in cards():
            self.env.note_dependency(str(VARIANTS / f"{each.name}.md"))
            picture = nodes.image(
                uri=f"pictures/{each.name}.png", alt="", candidates={"*": ""}
            )
            link = addnodes.pending_xref(
                "",
                nodes.strong(each.title, each.title),
                refdomain="std",
                reftype="doc",
                reftarget=f"/docs/variants/{each.name}",
                refexplicit=True,
                refdoc=self.env.docname,
            )
            gallery += nodes.container(
                "",
                nodes.container("", picture, classes=["picture"]),
                nodes.paragraph("", "", link, classes=["title"]),
                nodes.paragraph("", each.places, classes=["places"]),
                nodes.paragraph("", f"{each.sentence}."),
                classes=["card"],
            )
        return [gallery]
