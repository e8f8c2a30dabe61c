"""Parts of files."""

import pytest

from keras_attnvariants.beam import parts as module
from keras_attnvariants.beam.parts import join
from keras_attnvariants.beam.parts import parts_of

LINES = [b"\xef\xbb\xbfab", b"", b"c" * 20, b"d", b"", b"", b"efg"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_the_parts_have_every_line_once(monkeypatch, tmp_path, size, end):
    monkeypatch.setattr(module, "PART_BYTES", size)
    file = tmp_path / "text"
    file.write_bytes(b"\n".join(LINES) + end)
    parts = parts_of(file, tmp_path / "out")
    assert len(parts) == -(-file.stat().st_size // size)
    assert [part.output for part in parts] == sorted({part.output for part in parts})
    assert [line for part in parts for line in part.lines(drop_mark=False)] == LINES
    without_mark = [line for part in parts for line in part.lines(drop_mark=True)]
    assert without_mark == [b"ab", *LINES[1:]]


def test_an_empty_file_has_no_parts(tmp_path):
    (tmp_path / "empty").touch()
    assert parts_of(tmp_path / "empty", tmp_path / "out") == []


def test_files_are_joined_and_removed(tmp_path):
    files = [tmp_path / name for name in ("b", "a")]
    for file in files:
        file.write_text(file.name)
    join(files, tmp_path / "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]
    assert (tmp_path / "whole").read_text() == "ba"
