"""The cache, its folders, and records of large files."""

import hashlib
import os
from pathlib import Path

import pytest

from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.utils import caches
from keras_attnvariants.utils.caches import cached_folder
from keras_attnvariants.utils.caches import default_cache
from keras_attnvariants.utils.caches import remembered_entry
from keras_attnvariants.utils.folders import new_folder
from tests.data.toy import toy_pairs
from tests.data.toy import write_pairs


def test_the_place_of_the_cache(monkeypatch):
    monkeypatch.setenv("KAV_CACHE", "/somewhere")
    assert default_cache() == Path("/somewhere")
    monkeypatch.delenv("KAV_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/else")
    assert default_cache() == Path("/else/keras_attnvariants")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "keras_attnvariants"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KAV_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(caches, "LARGEST_READ", 3)
    return tmp_path / "cache"


@pytest.fixture
def file(tmp_path):
    """A file that was written to some time ago."""
    return write(tmp_path / "file", "abcd", 100)


def write(path, text, seconds):
    """Writes a file with a given time since 1970."""
    path.write_text(text)
    os.utime(path, (seconds, seconds))
    return path


@pytest.fixture
def read(monkeypatch):
    """The files that are read."""
    found, entry_of = [], caches.file_entry

    def entry(path, below=None):
        found.append(path)
        return entry_of(path, below)

    monkeypatch.setattr(caches, "file_entry", entry)
    return found


def sha256(text):
    return {"size": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def test_a_large_file_is_read_once(file, read):
    for _ in range(3):
        assert remembered_entry(file) == sha256("abcd")
    assert len(read) == 1


def test_a_small_file_is_read_each_time(tmp_path, read, cache):
    small = write(tmp_path / "small", "abc", 100)
    for _ in range(2):
        assert remembered_entry(small) == sha256("abc")
    assert len(read) == 2
    assert not cache.exists()


@pytest.mark.parametrize("change", ["content", "place", "time"])
def test_a_file_that_changed_is_read_again(file, read, change, tmp_path):
    remembered_entry(file)
    if change == "content":
        write(file, "dcba", 100)  # with the same time and size as before
    elif change == "place":
        write(tmp_path / "new", "dcba", 100).rename(file)
    else:
        os.utime(file, (101, 101))
    expected = "abcd" if change == "time" else "dcba"
    assert remembered_entry(file) == sha256(expected)
    assert len(read) == 2


def test_a_file_that_was_just_written_is_not_remembered(file, read):
    file.write_text("abcd")
    for _ in range(2):
        remembered_entry(file)
    assert len(read) == 2


def test_a_damaged_memory_costs_time_only(file, read, cache):
    remembered_entry(file)
    [memory] = (cache / "remembered").iterdir()
    for content in (b"", b"[]", b"{}", b"\xff"):
        memory.write_bytes(content)
        assert remembered_entry(file) == sha256("abcd")
    assert len(read) == 5


def test_without_a_cache_files_are_read_each_time(file, read, monkeypatch):
    monkeypatch.setenv("KAV_CACHE", str(file / "nowhere"))
    assert remembered_entry(file) == remembered_entry(file) == sha256("abcd")
    assert len(read) == 2


def test_a_prepared_corpus_is_not_read_again(monkeypatch, tmp_path, cache):
    """Neither its files nor its tokens; damage that changes a file is seen."""
    pairs = toy_pairs(300)
    write_pairs(tmp_path / "toy", "train", pairs)
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], 90)

    def tokens():
        corpus = load_corpus(tmp_path / "toy", "en", "de")
        return TokenizedCorpus(corpus, tokenizer).split("train")[0]

    monkeypatch.setattr(caches, "LARGEST_READ", 900)
    tokens()
    for path in filter(Path.is_file, tmp_path.rglob("*")):
        os.utime(path, (100, 100))
    tokens()

    read, entry_of = [], caches.file_entry
    monkeypatch.setattr(
        caches, "file_entry", lambda *paths: read.append(paths[0]) or entry_of(*paths)
    )
    monkeypatch.setattr("keras_attnvariants.data.corpora.check_text_file", read.append)
    expected = tokens().ids.tobytes()
    assert all(path.stat().st_size <= 900 for path in read)
    [folder] = cache.glob("corpora/*/tokens/*")
    (folder / "source.ids").write_bytes(b"\0" * len(expected))
    assert tokens().ids.tobytes() == expected


def test_a_cache_is_filled_once_and_again_when_damaged(tmp_path, capsys):
    calls = []

    def fill(folder):
        calls.append(folder.path)
        folder.write_bytes("data.bin", b"content")

    path = tmp_path / "cache" / "a"
    for _ in range(2):
        assert cached_folder(path, fill) == path
    assert len(calls) == 1 and capsys.readouterr().err == ""
    (path / "data.bin").write_bytes(b"contend")
    cached_folder(path, fill)
    assert (path / "data.bin").read_bytes() == b"content"
    assert len(calls) == 2 and "data.bin is not what" in capsys.readouterr().err


def test_a_damaged_cache_that_cannot_be_made_again_stays(tmp_path):
    with new_folder(tmp_path / "a") as folder:
        folder.write_bytes("data.bin", b"content")
        folder.write_bytes("value.json", b"1")
    (tmp_path / "a/data.bin").unlink()

    def fill(folder):
        raise OSError("no web")

    with pytest.raises(OSError, match="no web"):
        cached_folder(tmp_path / "a", fill)
    assert (tmp_path / "a/value.json").is_file()


def test_a_user_without_a_home_learns_what_to_set(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    for name in ("KAV_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="KAV_CACHE"):
        default_cache()
