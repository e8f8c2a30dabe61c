import io
import tarfile

import pytest

from keras_attnvariants.data import FetchError
from keras_attnvariants.data.sources.archives import member_lines
from keras_attnvariants.data.sources.archives import read_member
from keras_attnvariants.data.sources.archives import segments
from keras_attnvariants.data.sources.archives import write_lines
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


def test_segments(tmp_path):
    content = packing.test_set("a &amp; b", "two\nlines", "<i>c</i>", "")
    (tmp_path / "archive").write_bytes(packing.tar_bytes({"t.xml": content}))
    expected = ["a & b", "two lines", "<i>c</i>", ""]
    assert segments(tmp_path / "archive", "t.xml") == expected


def test_written_lines(tmp_path):
    write_lines(tmp_path / "a", ["ä", "b"])
    assert (tmp_path / "a").read_bytes() == "ä\nb\n".encode()
