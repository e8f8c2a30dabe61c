import gzip
import io
import tarfile
import time

import pytest

from keras_attnvariants.data import FetchError
from keras_attnvariants.data.sources.archives import member_lines
from keras_attnvariants.data.sources.archives import read_member
from tests.data.sources import packing

FILES = {"top/a.de": packing.text("eins", "zwei"), "top/sub/a.en": b"one\r\ntwo"}


@pytest.fixture(params=[packing.zip_bytes, packing.tar_bytes])
def archive(request, tmp_path):
    path = tmp_path / "archive"
    path.write_bytes(request.param(FILES))
    return path


def test_members_are_found_by_the_end_of_their_path(archive):
    assert read_member(archive, "a.de") == b"eins\nzwei\n"
    assert read_member(archive, "sub/a.en") == b"one\r\ntwo"
    assert list(member_lines(archive, "a.en")) == ["one", "two"]


def test_missing_members(archive):
    for name in ("a.fr", "b/a.de", ".de"):
        with pytest.raises(FetchError, match=rf"archive has no file {name}\."):
            read_member(archive, name)


def test_broken_archives(archive):
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) // 2])
    with pytest.raises(FetchError, match="not a complete archive"):
        read_member(archive, "sub/a.en")


def test_links_are_not_followed(tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        link = tarfile.TarInfo("a.de")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    (tmp_path / "archive").write_bytes(buffer.getvalue())
    with pytest.raises(FetchError, match="has no file"):
        read_member(tmp_path / "archive", "a.de")


def test_encrypted_zips_and_odd_ones(tmp_path):
    content = bytearray(packing.zip_bytes(FILES))
    for offset, value, message in ((6, 1, "encrypted"), (8, 97, "not supported")):
        odd = bytearray(content)
        for header, place in ((b"PK\3\4", offset), (b"PK\1\2", offset + 2)):
            start = odd.index(header)
            odd[start + place] = value
        (tmp_path / "archive").write_bytes(odd)
        with pytest.raises(FetchError, match=f"not a complete archive .*{message}"):
            read_member(tmp_path / "archive", "a.de")


@pytest.mark.parametrize("pack", [packing.zip_bytes, packing.tar_bytes])
def test_archives_that_unpack_to_much_more_than_they_are(tmp_path, pack):
    (tmp_path / "archive").write_bytes(pack({"a.de": (b"eins" * 5000 + b"\n") * 5000}))
    with pytest.raises(FetchError, match="unpacks to more than 64 MB"):
        for _ in member_lines(tmp_path / "archive", "a.de"):
            pass


def test_gzip_files_in_archives(tmp_path):
    packed = {"a.gz": gzip.compress(b"eins"), "b.gz": gzip.compress(b"eins")[:-6]}
    packed["c.gz"] = gzip.compress(b"0" * 70_000_000)
    (tmp_path / "archive").write_bytes(packing.tar_bytes(packed))
    assert read_member(tmp_path / "archive", "a.gz") == b"eins"
    for name, message in (("b.gz", "not a complete"), ("c.gz", "more than 64 MB")):
        with pytest.raises(FetchError, match=message):
            read_member(tmp_path / "archive", name)


@pytest.mark.parametrize("tag", ["<seg>", "<seg ", "</seg>", "<seg><seg id=1"])
def test_segments_take_linear_time(tmp_path, tag):
    content = (tag * (2_000_000 // len(tag)) + "<seg>a</seg>").encode()
    (tmp_path / "archive").write_bytes(packing.tar_bytes({"t.sgm": content}))
    start = time.process_time()
    assert len(list(member_lines(tmp_path / "archive", "t.sgm"))) == 1
    assert time.process_time() - start < 5


def test_segments(tmp_path):
    content = packing.test_set("a &amp; b", "two\nlines", "<i>c</i>", "")
    (tmp_path / "archive").write_bytes(packing.tar_bytes({"t.xml": content}))
    expected = ["a & b", "two lines", "<i>c</i>", ""]
    assert list(member_lines(tmp_path / "archive", "t.xml")) == expected


def test_lines_that_describe_talks_are_left_out(tmp_path):
    content = packing.text("<url>http</url>", " <title>a</title>", " one <b> ", "two")
    (tmp_path / "archive").write_bytes(packing.tar_bytes({"train.tags.de": content}))
    lines = list(member_lines(tmp_path / "archive", "train.tags.de"))
    assert lines == ["one <b>", "two"]


def test_a_file_that_is_not_an_archive(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"eins\nzwei\n"))
    assert list(member_lines(tmp_path / "a.gz", "")) == ["eins", "zwei"]
    (tmp_path / "a.gz").write_bytes(b"eins")
    with pytest.raises(FetchError, match="not a complete"):
        list(member_lines(tmp_path / "a.gz", ""))
