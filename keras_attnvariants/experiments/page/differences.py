"""Which words of a translation differ from those of another."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple


class Run(NamedTuple):
    """Words in a row, and whether they differ."""

    text: str
    differs: bool


def differing(text: str, other: str) -> list[Run]:
    """A text in runs of words that the other has too, in this order, and has not.

    White space separates words; runs joined with a space are the text, with one space
    for each white space.

    >>> differing("a red house", "a house")
    [Run(text='a', differs=False), Run(text='red', differs=True), \
Run(text='house', differs=False)]
    """
    words = text.split()
    shared = set(matched(words, other.split()))
    return [
        Run(" ".join(words[number] for number in numbers), differs)
        for differs, numbers in groupby(
            range(len(words)), lambda number: number not in shared
        )
    ]


def matched(words: list[str], others: list[str]) -> Iterator[int]:
    """The numbers of the words that are matched with others in order."""
    # Without the heuristic for text of many lines, which ignores frequent words.
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    for block in matcher.get_matching_blocks():
        yield from range(block.a, block.a + block.size)
