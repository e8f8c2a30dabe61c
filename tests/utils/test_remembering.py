"""What is known of large files."""

import os
from pathlib import Path

import pytest

from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.utils import remembering
from keras_attnvariants.utils.remembering import remembered
from tests.data.toy import toy_pairs
from tests.data.toy import write_pairs


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KAV_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(remembering, "LARGEST_READ", 3)
    return tmp_path / "cache"


@pytest.fixture
def file(tmp_path):
    """A file that was written to some time ago."""
    return write(tmp_path / "file", "abcd", 100)


def write(path, text, seconds):
    """Writes a file as at a time since 1970."""
    path.write_text(text)
    os.utime(path, (seconds, seconds))
    return path


@pytest.fixture
def read():
    """Reads files and counts how often."""

    def find(path):
        find.count += 1
        return path.read_text()

    find.count = 0
    return find


def test_a_large_file_is_read_once(file, read):
    for _ in range(3):
        assert remembered(file, "text", read) == "abcd"
    assert read.count == 1
    assert remembered(file, "other", read) == "abcd"
    assert read.count == 2


def test_a_small_file_is_read_each_time(tmp_path, read, cache):
    small = write(tmp_path / "small", "abc", 100)
    for _ in range(2):
        assert remembered(small, "text", read) == "abc"
    assert read.count == 2
    assert not cache.exists()


@pytest.mark.parametrize("change", ["content", "place", "time"])
def test_a_file_that_changed_is_read_again(file, read, change, tmp_path):
    remembered(file, "text", read)
    if change == "content":
        write(file, "dcba", 100)  # with the time and the size of before
    elif change == "place":
        write(tmp_path / "new", "dcba", 100).rename(file)
    else:
        os.utime(file, (101, 101))
    expected = "abcd" if change == "time" else "dcba"
    assert remembered(file, "text", read) == expected
    assert read.count == 2


def test_a_file_that_was_just_written_is_not_remembered(file, read):
    file.write_text("abcd")
    for _ in range(2):
        remembered(file, "text", read)
    assert read.count == 2


def test_a_damaged_memory_costs_time_only(file, read, cache):
    remembered(file, "text", read)
    [memory] = (cache / "remembered").iterdir()
    for content in (b"", b"[]", b"{}", b"\xff"):
        memory.write_bytes(content)
        assert remembered(file, "text", read) == "abcd"
    assert read.count == 5


def test_without_a_cache_files_are_read_each_time(file, read, monkeypatch):
    monkeypatch.setenv("KAV_CACHE", str(file / "nowhere"))
    assert remembered(file, "text", read) == remembered(file, "text", read) == "abcd"
    assert read.count == 2


def test_a_prepared_corpus_is_not_read_again(monkeypatch, tmp_path, cache):
    """Neither its files nor its tokens; damage that changes a file is seen."""
    pairs = toy_pairs(300)
    write_pairs(tmp_path / "toy", "train", pairs)
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], 90)

    def tokens():
        corpus = load_corpus(tmp_path / "toy", "en", "de")
        return TokenizedCorpus(corpus, tokenizer).split("train")[0]

    monkeypatch.setattr(remembering, "LARGEST_READ", 900)
    tokens()
    for path in filter(Path.is_file, tmp_path.rglob("*")):
        os.utime(path, (100, 100))
    tokens()

    read, entry_of = [], remembering.file_entry
    monkeypatch.setattr(
        remembering, "file_entry", lambda path: read.append(path) or entry_of(path)
    )
    monkeypatch.setattr("keras_attnvariants.data.corpora.check_text_file", read.append)
    expected = tokens().ids.tobytes()
    assert all(path.stat().st_size <= 900 for path in read)
    [folder] = cache.glob("corpora/*/tokens/*")
    (folder / "source.ids").write_bytes(b"\0" * len(expected))
    assert tokens().ids.tobytes() == expected
