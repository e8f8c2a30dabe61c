"""Lines of files, their encoding, and names of derived files."""

import codecs
import gzip
import os
from collections import Counter

import pytest

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.text_files import check_text_file
from keras_attnvariants.data.text_files import fingerprint
from keras_attnvariants.data.text_files import held_out_split
from keras_attnvariants.data.text_files import read_byte_lines
from tests.data.toy import write_bytes


def test_lines_end_where_files_say(tmp_path):
    plain, packed = tmp_path / "a", tmp_path / "b"
    content = b"\xef\xbb\xbfone\r\ntwo\n\nlast"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    expected = [b"one", b"two", b"", b"last"]
    assert list(read_byte_lines(plain)) == list(read_byte_lines(packed)) == expected


@pytest.mark.parametrize("length", [5, 20, 30])
def test_truncated_gzip_files(tmp_path, length):
    content = gzip.compress(b"eins\nzwei\n" * 50)
    assert length < len(content)
    (tmp_path / "a").write_bytes(content[:length])
    with pytest.raises(ValueError, match="Broken gzip file.*Received: .*a$"):
        list(read_byte_lines(tmp_path / "a"))


def test_changed_gzip_files(tmp_path):
    content = bytearray(gzip.compress(os.urandom(1000)))
    content[500] ^= 1
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match="Broken gzip file.*Received: .*a$"):
        list(read_byte_lines(tmp_path / "a"))


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="Received: .*absent"):
        next(read_byte_lines(tmp_path / "absent"))


def test_fingerprint_follows_content_and_settings(tmp_path):
    file = tmp_path / "file"
    file.write_text("content")
    first = fingerprint([file], 1)
    assert first == fingerprint([file], 1)
    assert first != fingerprint([file], 2)
    file.write_text("other content")
    assert first != fingerprint([file], 1)


def test_fingerprint_of_a_copy_is_the_same(tmp_path):
    names = [tmp_path / folder / "train.de" for folder in "ab"]
    for file in names:
        file.parent.mkdir()
        file.write_text("content")
    os.utime(names[1], (0, 0))
    assert fingerprint(names[:1], 1) == fingerprint(names[1:], 1)


def test_held_out_shares_are_stable():
    counts = Counter(held_out_split(f"{i}:1") for i in range(10_000))
    assert counts["train"] == pytest.approx(9400, abs=100)
    assert counts["validation"] == pytest.approx(300, abs=60)
    assert counts["test"] == pytest.approx(300, abs=60)
    # Never to be changed: other splits would make scores incomparable.
    held_out = [n for n in range(1, 51) if held_out_split(f"1:{n}") != "train"]
    assert held_out == [6, 17]


GERMAN = "ein großes Haus\nfür die Mäuse\nund ein Fluss\n" * 20
POLISH = "zażółć gęślą jaźń\n" * 20
RUSSIAN = "большой дом\nи маленькая река\n" * 20
JAPANESE = "大きな家\n小さな川\n" * 20


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (GERMAN.encode("latin-1"), "latin-1"),
        (RUSSIAN.encode("cp1251"), "cp1251"),
        (JAPANESE.encode("shift-jis"), "shift-jis"),
        (GERMAN.encode("utf-16"), "utf-16"),
        (codecs.BOM_UTF16_BE + JAPANESE.encode("utf-16-be"), "utf-16"),
        (GERMAN.encode("utf-16-le"), "utf-16-le"),
        (POLISH.encode("utf-16-be"), "utf-16-be"),
        (GERMAN.encode("utf-32"), "utf-32"),
    ],
)
def test_other_encodings_are_refused(tmp_path, content, encoding):
    (tmp_path / "train.de").write_bytes(content)
    message = r"`file --mime-encoding` .*`iconv .*Received: .*train\.de$"
    with pytest.raises(ValueError, match=message) as error:
        check_text_file(tmp_path / "train.de")
    assert "\n" not in str(error.value)
    text = content.decode(encoding)
    (tmp_path / "train.de").write_text(text, encoding="utf-8")
    check_text_file(tmp_path / "train.de")


def test_the_share_of_lines_in_another_encoding_is_told(tmp_path):
    content = GERMAN.encode("latin-1") + GERMAN.encode("utf-8")
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match=r"33\.3% of the lines .*grep -axv"):
        check_text_file(tmp_path / "a")


def test_line_ends_of_old_macs_are_named(tmp_path):
    (tmp_path / "a").write_bytes(b"one\rtwo\r")
    with pytest.raises(ValueError, match="end in CR alone.*`tr .*Received: .*a$"):
        check_text_file(tmp_path / "a")
    for content in (b"one\r\ntwo\r\n", b"one\r", b"one\rtwo\n"):
        (tmp_path / "a").write_bytes(content)
        check_text_file(tmp_path / "a")


@pytest.mark.parametrize("text", [GERMAN, POLISH, RUSSIAN, JAPANESE, "", "\ufeffa"])
def test_text_in_utf8_is_accepted(tmp_path, text):
    (tmp_path / "a").write_text(text, encoding="utf-8")
    check_text_file(tmp_path / "a", max_invalid=0)


def test_the_share_of_bad_lines_decides(tmp_path):
    (tmp_path / "a").write_bytes(b"line\n" * 99 + b"\xff\n")
    check_text_file(tmp_path / "a", max_invalid=0.01)
    with pytest.raises(ValueError, match=r"1\.0% of the .* 0\.9% that `max_invalid`"):
        check_text_file(tmp_path / "a", max_invalid=0.009)


def test_a_corpus_of_which_some_lines_happen_to_be_utf8(tmp_path, cache):
    sides = "ein Haus\ndie Mäuse\nein Fluss\n" * 10, "a\nb\nc\n" * 10
    write_bytes(tmp_path / "c", "train", sides[1].encode(), sides[0].encode("latin-1"))
    with pytest.raises(ValueError, match=r"33\.3% of the lines .*Received: .*\.de$"):
        load_corpus(tmp_path / "c", "en", "de", cache)
    corpus = load_corpus(tmp_path / "c", "en", "de", cache, max_invalid=0.4)
    assert corpus.reports["train"].problems == {"invalid UTF-8": 10}
    # A file that was accepted once is not accepted forever.
    with pytest.raises(ValueError, match="`max_invalid`"):
        load_corpus(tmp_path / "c", "en", "de", cache)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "1"])
def test_shares_out_of_range(tmp_path, share):
    with pytest.raises(ValueError, match="`max_invalid` must be from 0 to 1. Received"):
        load_corpus(tmp_path, "en", "de", max_invalid=share)


def test_a_tokenizer_learns_from_utf8_only(tmp_path):
    (tmp_path / "a").write_bytes(GERMAN.encode("latin-1"))
    with pytest.raises(ValueError, match=r"not UTF-8.*Received: .*a$"):
        Tokenizer.train([tmp_path / "a"], vocabulary_size=20)
