"""Links between the words of two sentences, in the format of Pharaoh: `0-0 1-2`."""

import re

# A word of the source and one of the target, from 0.
Link = tuple[int, int]
LINK = re.compile(r"(\d+)([-p?])(\d+)")


def parse_links(
    text: str, reverse: bool, where: str
) -> tuple[frozenset[Link], frozenset[Link]]:
    """The sure and the possible links of a line; the sure ones are possible, too.

    Args:
        text: `0-0 1-2` for sure links, `1p2` or `1?2` for possible ones.
        reverse: whether the first number of a link is that of the target word.
        where: line and file, for the error message.

    Raises:
        ValueError: something in the line is no link.
    """
    sure, possible = set(), set()
    for word in text.split():
        found = LINK.fullmatch(word)
        if not found:
            raise ValueError(
                "Links must be like 0-0, 1-2 or 1p2, numbered from 0. "
                f"Received: {word!r:.40} in {where}"
            )
        link = int(found[1]), int(found[3])
        link = link[::-1] if reverse else link
        possible.add(link)
        if found[2] == "-":
            sure.add(link)
    return frozenset(sure), frozenset(possible)


def check_links(
    links: frozenset[Link], source_words: int, target_words: int, where: str
) -> None:
    """Raises `ValueError` unless all links are between words that exist."""
    for source, target in sorted(links):
        if source >= source_words or target >= target_words:
            raise ValueError(
                f"Links must be between {source_words} source and {target_words} "
                "target words, numbered from 0; are source and target the wrong way "
                f"round? Received: {source}-{target} in {where}"
            )
