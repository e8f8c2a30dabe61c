"""Checks the pages of a built site: `python docs/sphinx_parts/check_site.py FOLDER`.

Every link within the site must lead to a file and, if it has an anchor, to an element
of that name. Scripts, styles, fonts and pictures must be files of the site. Links to
other sites are not fetched.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from urllib.parse import urlsplit

LOADED = {"script": "src", "img": "src", "source": "src", "link": "href"}


class Page(HTMLParser):
    """The links of a page, the files that it loads, and its anchors.

    Attributes:
        links: addresses that it links to.
        loaded: addresses that a browser loads with it.
        anchors: values of `id` and `name`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects the addresses and anchors of a tag."""
        found = {name: value or "" for name, value in attrs}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADED and LOADED[tag] in found:
            self.loaded.append(found[LOADED[tag]])


def mistakes(folder: Path) -> list[str]:
    """Broken links, and files loaded from other sites, with their pages."""
    # Copied pages, such as those of comparisons, are not part of the site.
    paths = [x for x in folder.rglob("*.html") if "_downloads" not in x.parts]
    pages = {path.resolve(): Page(path) for path in paths}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        for address in page.loaded:
            if urlsplit(address).netloc:
                found.append(f"{name} loads {address}")
        for address in dict.fromkeys([*page.links, *page.loaded]):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = path.parent / unquote(parts.path) if parts.path else path
            target = target.resolve()
            if not target.is_file():
                found.append(f"{name} leads to {address}, which is not there")
            elif (
                target in pages and unquote(parts.fragment) not in pages[target].anchors
            ):
                found.append(f"{name} leads to {address}, which has no such anchor")
    return found


if __name__ == "__main__":
    wrong = mistakes(Path(sys.argv[1]))
    print("\n".join(wrong) or "All links within the site lead somewhere.")
    sys.exit(bool(wrong))
