"""Files that are whole, and tables."""

import errno
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from keras_attnvariants.utils import files
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import NotPlainFileError
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.files import open_plain
from keras_attnvariants.utils.files import read_file
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import read_npz
from keras_attnvariants.utils.files import replace_file
from keras_attnvariants.utils.files import write_file


def test_write_file_replaces_the_file_or_leaves_it(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_file(path, b"first")
    write_file(path, b"second")
    assert path.read_bytes() == b"second"

    def full(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.NewFile, "write", full)
    with pytest.raises(OSError, match="No space"):
        write_file(path, b"third")
    assert path.read_bytes() == b"second"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_write_file_writes_to_a_pipe(tmp_path):
    """A rename would replace a device, `/dev/null` for example, by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(pipe, b"text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_write_file_writes_to_an_open_file(tmp_path):
    """A shell opens files like this: `kav tune --csv /dev/stdout > file`."""
    with (tmp_path / "file").open("wb", buffering=0) as file:
        file.write(b"first")
        path = Path(f"/proc/self/fd/{file.fileno()}")
        write_file(path, b" second")
        file.write(b" third")
    assert (tmp_path / "file").read_bytes() == b"first second third"


def test_write_file_keeps_links_and_refuses_folders(tmp_path):
    (tmp_path / "link").symlink_to("file")
    write_file(tmp_path / "link", b"text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"text"
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path, b"text")


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder", "socket"])
def test_only_plain_files_are_opened(tmp_path, kind):
    path, elsewhere = tmp_path / "config.json", tmp_path / "elsewhere"
    if kind == "link":
        elsewhere.write_text("{}")
    if kind in ("link", "dangling"):
        path.symlink_to(elsewhere)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mknod(path, 0o600 | stat.S_IFSOCK)
    for read in (read_json, read_file, file_entry, read_npz):
        with pytest.raises(NotPlainFileError, match="no link and no pipe.*Received: "):
            read(path)
    with pytest.raises(NotPlainFileError), open(path, "ab", opener=open_plain):
        pass
    assert not elsewhere.exists() or elsewhere.read_text() == "{}"
    if kind != "folder":
        replace_file(path, b"[]")
        assert read_json(path) == []


def test_files_of_objects_or_junk_are_not_read_as_arrays(tmp_path):
    np.savez(tmp_path / "objects.npz", a=np.array([{}], object))
    np.save(tmp_path / "array.npz.npy", np.arange(3))
    (tmp_path / "junk.npz").write_bytes(b"PK\x03\x04junk")
    (tmp_path / "text.npz").write_bytes(b"text")
    for path in tmp_path.iterdir():
        with pytest.raises(DamagedFolderError, match="no.* of arrays") as error:
            read_npz(path)
        assert "pickle" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": [1, 2', "cut short or not JSON"),
        (b"", "cut short or not JSON"),
        (b"\xff\xfe\xff", "not text"),
        (b"[" * 200_000, "nested too deeply"),
        (b" " * (1 << 26) + b"1", "larger than"),
        (None, "is missing"),
    ],
)
def test_json_files_that_are_damaged_are_named(tmp_path, content, message):
    path = tmp_path / "config.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DamagedFolderError, match=f"config.json.*{message}.*Received"):
        read_json(path)
