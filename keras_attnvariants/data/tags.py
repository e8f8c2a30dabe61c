"""Words in front of sources that a vocabulary has as one piece each."""

import unicodedata

# What SentencePiece writes for a space; every sentence begins with one.
SPACE = "▁"


def check_tag(tag: str) -> str:
    """Returns a word that can be kept as one piece.

    Raises:
        ValueError: It is empty, has spaces, or has characters that SentencePiece would
            change or that separate its options.
    """
    is_word = bool(tag) and tag.isprintable() and tag.split() == [tag]
    unchanged = unicodedata.normalize("NFKC", tag) == tag
    if not is_word or not unchanged or SPACE in tag or "," in tag:
        raise ValueError(
            "A tag must be one word without a comma, such as '<2de>'. "
            f"Received: {tag!r}"
        )
    return tag


def symbol_of(tag: str) -> str:
    """The piece that a tag becomes."""
    return SPACE + tag


def tag_of(symbol: str) -> str:
    """The tag that became a piece."""
    return symbol.removeprefix(SPACE)
