"""Folders appear whole or not at all, and damage is noticed."""

import errno
import json

import pytest

from keras_attnvariants.training import folders
from keras_attnvariants.training.folders import DamagedFolderError
from keras_attnvariants.training.folders import check_folder
from keras_attnvariants.training.folders import new_folder
from keras_attnvariants.training.folders import remove_leftovers
from keras_attnvariants.training.folders import write_file


def write(path, content=b"content"):
    with new_folder(path) as folder:
        with folder.open("data.bin") as file:
            file.write(content)
        folder.write_json("value.json", {"a": 1})


def test_folder_appears_with_manifest_and_nothing_else_is_left(tmp_path):
    write(tmp_path / "good")
    check_folder(tmp_path / "good")
    assert [path.name for path in tmp_path.iterdir()] == ["good"]
    manifest = json.loads((tmp_path / "good/manifest.json").read_text())
    assert manifest["data.bin"]["size"] == 7
    assert set(manifest) == {"data.bin", "value.json"}


def test_folder_is_replaced(tmp_path):
    write(tmp_path / "good", b"old")
    write(tmp_path / "good", b"new")
    check_folder(tmp_path / "good")
    assert (tmp_path / "good/data.bin").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_failure_leaves_the_old_folder(tmp_path):
    write(tmp_path / "good", b"old")
    with pytest.raises(KeyError), new_folder(tmp_path / "good") as folder:
        folder.write_json("value.json", 1)
        raise KeyError
    assert (tmp_path / "good/data.bin").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_everything_is_on_the_disk_before_the_rename(tmp_path, monkeypatch):
    events = []
    fsync, rename = folders.os.fsync, folders.Path.rename

    def note(name, function):
        def noted(*args):
            events.append(name)
            return function(*args)

        return noted

    monkeypatch.setattr(folders.os, "fsync", note("fsync", fsync))
    monkeypatch.setattr(folders.Path, "rename", note("rename", rename))
    write(tmp_path / "good")
    # Two files, the manifest and the folder; the rename; the folder above.
    assert events == ["fsync"] * 4 + ["rename", "fsync"]


@pytest.mark.parametrize("name", ["data.bin", "value.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_damage_is_noticed(tmp_path, name, damage):
    write(tmp_path / "good")
    path = tmp_path / "good" / name
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[:-1] if name != "manifest.json" else content[:20])
    else:
        content[3] ^= 1  # inside a name, a value or a key
        path.write_bytes(content)
    with pytest.raises(DamagedFolderError):
        check_folder(tmp_path / "good")


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    write(tmp_path / "good")
    (tmp_path / "tmp-better").mkdir()
    (tmp_path / "tmp-better" / "data.bin").write_bytes(b"half")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_write_file_replaces_or_fails_whole(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_file(path, b"first")
    write_file(path, b"second")
    assert path.read_bytes() == b"second"

    def full(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folders._HashedFile, "write", full)
    with pytest.raises(OSError, match="No space"):
        write_file(path, b"third")
    assert path.read_bytes() == b"second"
