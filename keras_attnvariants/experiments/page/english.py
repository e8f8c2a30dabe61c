"""Formats numbers in English, and finds the words in which two texts differ."""

import re
from difflib import SequenceMatcher

MINUS = "−"
# Not allowed in HTML: control characters and halves of surrogate pairs.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def printable(text: str) -> str:
    """A text with U+FFFD for each character that HTML does not allow.

    >>> printable("a\\x07b")
    'a\N{REPLACEMENT CHARACTER}b'
    """
    return FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def fixed(value: float, digits: int = 2) -> str:
    """A number with `digits` decimals, commas between thousands, and a real minus.

    >>> fixed(-1234.567)
    '−1,234.57'
    >>> fixed(-0.001)
    '0.00'
    """
    return f"{value:z,.{digits}f}".replace("-", MINUS)


def number(value: float) -> str:
    """A number with as many digits as it needs, at most two after the point.

    >>> number(3.0), number(2.5)
    ('3', '2.5')
    """
    return fixed(value).rstrip("0").rstrip(".")


def signed(value: float) -> str:
    """`fixed` for a difference, with its sign unless it is rounded to 0.

    >>> signed(0.3), signed(-0.3), signed(0.001)
    ('+0.30', '−0.30', '0.00')
    """
    text = fixed(value)
    return f"+{text}" if value > 0 and text.strip("0.,") else text


def probability(value: float) -> str:
    """A p-value.

    >>> probability(0.0004), probability(0.0312), probability(1)
    ('< 0.001', '0.031', '1.000')
    """
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "system"), counted(3, "system"), counted(12, "system")
    ('one system', 'three systems', '12 systems')
    """
    number = SMALL[count] if count < len(SMALL) else f"{count:,}"
    return f"{number} {noun}" if count == 1 else f"{number} {noun}s"


def differing(text: str, other: str) -> list[tuple[str, bool]]:
    """Runs of words of a text, and whether the other text lacks them at this place.

    White space separates words; runs joined with a space are the text, with one space
    for each white space.

    >>> differing("a red house", "a house")
    [('a', False), ('red', True), ('house', False)]
    """
    words = text.split()
    # Without the heuristic for long texts, which ignores frequent words.
    matcher = SequenceMatcher(None, words, other.split(), autojunk=False)
    return [
        (" ".join(words[first:end]), tag != "equal")
        for tag, first, end, _, _ in matcher.get_opcodes()
        if first < end
    ]
