"""Folders appear complete or not at all, and damage is noticed."""

import errno
import json
import os
import sys

import pytest

from keras_attnvariants.utils import folders
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import names_in
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.folders import read_manifest
from keras_attnvariants.utils.folders import remove_leftovers


def write(path, content=b"content"):
    with new_folder(path) as folder:
        with folder.open("data.bin") as file:
            file.write(content)
        folder.write_json("value.json", {"a": 1})


def test_folder_appears_with_manifest_and_nothing_else_is_left(tmp_path):
    write(tmp_path / "good")
    check_folder(tmp_path / "good", ())
    assert [path.name for path in tmp_path.iterdir()] == ["good"]
    manifest = json.loads((tmp_path / "good/manifest.json").read_text())
    assert manifest["data.bin"]["size"] == 7
    assert set(manifest) == {"data.bin", "value.json"}


def test_files_that_others_wrote_by_path_are_in_the_manifest(tmp_path):
    with new_folder(tmp_path / "a" / "b") as folder:
        (folder.path / "sub").mkdir()
        (folder.path / "sub" / "file").write_text("content")
        assert not (tmp_path / "a" / "b").exists()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
    assert list(read_manifest(tmp_path / "a" / "b")) == ["sub/file"]
    (tmp_path / "a" / "b" / "sub" / "file").write_text("contend")
    with pytest.raises(DamagedFolderError, match="sub/file is not what was written"):
        check_folder(tmp_path / "a" / "b", ())


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    write(tmp_path / "a")
    os.truncate(tmp_path / "a" / "data.bin", 3 * 10**9)  # takes no place on the disk
    with pytest.raises(DamagedFolderError, match="data.bin .* its size differs"):
        check_folder(tmp_path / "a", (), entry_of=lambda path, below: pytest.fail())


def test_the_first_of_two_processes_fills_a_cache(tmp_path):
    with new_folder(tmp_path / "a", replace=False) as slow:
        slow.write_bytes("file", b"slow")
        with new_folder(tmp_path / "a", replace=False) as fast:
            fast.write_bytes("file", b"fast")
    assert (tmp_path / "a" / "file").read_bytes() == b"fast"
    assert len(list(tmp_path.iterdir())) == 1


def test_the_last_of_two_processes_replaces(tmp_path):
    with new_folder(tmp_path / "a") as slow:
        slow.write_bytes("file", b"slow")
        with new_folder(tmp_path / "a") as fast:
            fast.write_bytes("file", b"fast")
    assert (tmp_path / "a" / "file").read_bytes() == b"slow"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_is_not_replaced_by_a_folder(tmp_path):
    (tmp_path / "a").write_text("content")
    with pytest.raises(NotADirectoryError, match="Received: the file"):
        write(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "content"


class PowerCut(BaseException):
    """A stand-in for a power cut: nothing after it is executed."""


@pytest.mark.parametrize("reader", [read_manifest, lambda path: write(path, b"newer")])
def test_a_power_cut_between_two_renames_loses_nothing(tmp_path, monkeypatch, reader):
    write(tmp_path / "good", b"old")
    rename = folders.Path.rename

    def cut(path, target):
        if target == tmp_path / "good":
            raise PowerCut
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(folders.Path, "rename", cut)
        patch.setattr(folders.shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(PowerCut):
            write(tmp_path / "good", b"new")
    assert not (tmp_path / "good").exists()
    reader(tmp_path / "good")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["good"]
    expected = b"old" if reader is read_manifest else b"newer"
    assert (tmp_path / "good/data.bin").read_bytes() == expected


def test_leftovers_give_back_what_was_about_to_be_replaced(tmp_path):
    write(tmp_path / "good", b"old")
    (tmp_path / "good").rename(tmp_path / "tmp-old-good")
    (tmp_path / "tmp-good-1234").mkdir()
    remove_leftovers(tmp_path)
    check_folder(tmp_path / "good", ())
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("[]", "must list the files"),
        ("{", "cut short or not JSON"),
        ("[" * 200_000, "nested too deeply"),
        ('{"../data.bin": {"size": 0, "sha256": "00"}}', "outside the folder"),
        ('{"/etc/hosts": {"size": 0, "sha256": "00"}}', "outside the folder"),
        ('{"data.bin": {}}', "must list the files .* with size and sha256"),
        ('{"data.bin": "00"}', "must list the files .* with size and sha256"),
        ("{}", "must list the files"),
    ],
)
def test_manifests_that_prove_nothing_are_refused(tmp_path, manifest, message):
    write(tmp_path / "good")
    (tmp_path / "good/manifest.json").write_text(manifest)
    with pytest.raises(DamagedFolderError, match=f"{message}.*Received: "):
        check_folder(tmp_path / "good", ())


def test_files_that_a_kind_of_folder_needs_must_be_listed(tmp_path):
    write(tmp_path / "good")
    with pytest.raises(DamagedFolderError, match="must list 'weights.bin'"):
        check_folder(tmp_path / "good", ["data.bin", "weights.bin"])


def test_links_are_not_followed(tmp_path):
    """They could name anything: a pipe that never ends, or another user's files."""
    write(tmp_path / "good")
    (tmp_path / "good/data.bin").rename(tmp_path / "outside")
    (tmp_path / "good/data.bin").symlink_to(tmp_path / "outside")
    with pytest.raises(DamagedFolderError, match="data.bin must .* no link"):
        check_folder(tmp_path / "good", ())


@pytest.mark.skipif(sys.platform == "win32", reason="has no such pipes")
def test_pipes_are_not_read(tmp_path):
    write(tmp_path / "good")
    (tmp_path / "good/data.bin").unlink()
    os.mkfifo(tmp_path / "good/data.bin")
    with pytest.raises(DamagedFolderError, match="data.bin must be a plain file"):
        check_folder(tmp_path / "good", ())


def test_links_between_folders_are_not_followed(tmp_path):
    with new_folder(tmp_path / "good") as folder:
        (folder.path / "sub").mkdir()
        (folder.path / "sub" / "file").write_text("content")
    (tmp_path / "link").symlink_to(tmp_path / "good")
    with pytest.raises(DamagedFolderError, match="no link"):
        check_folder(tmp_path / "link", ())
    (tmp_path / "good/sub").rename(tmp_path / "elsewhere")
    (tmp_path / "good/sub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedFolderError, match="sub/file|no link"):
        check_folder(tmp_path / "good", ())


def test_a_folder_above_may_be_a_link(tmp_path):
    write(tmp_path / "sub" / "good")
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    check_folder(tmp_path / "link" / "good", ())


def test_a_link_is_replaced_and_not_what_it_leads_to(tmp_path):
    write(tmp_path / "theirs", b"theirs")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/best").symlink_to(tmp_path / "theirs")
    write(tmp_path / "runs/best", b"ours")
    assert (tmp_path / "theirs/data.bin").read_bytes() == b"theirs"
    assert (tmp_path / "runs/best/data.bin").read_bytes() == b"ours"
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["best"]


def test_leftovers_behind_a_link_are_not_removed(tmp_path):
    write(tmp_path / "theirs/tmp-better")
    (tmp_path / "state").symlink_to(tmp_path / "theirs")
    for function in (remove_leftovers, names_in):
        with pytest.raises(DamagedFolderError, match="state must be .* no link"):
            function(tmp_path / "state")
    (tmp_path / "state").unlink()
    (tmp_path / "tmp-link").symlink_to(tmp_path / "theirs")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]
    check_folder(tmp_path / "theirs/tmp-better", ())


def test_a_file_that_must_not_be_read_is_not_missing(tmp_path, monkeypatch):
    write(tmp_path / "good")
    opened = os.open

    def refuse(path, *args, **options):
        if path == tmp_path / "good/data.bin":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return opened(path, *args, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match="Permission denied: .*good/data.bin"):
        check_folder(tmp_path / "good", ())


def test_folder_is_replaced(tmp_path):
    write(tmp_path / "good", b"old")
    write(tmp_path / "good", b"new")
    check_folder(tmp_path / "good", ())
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
    fsync, rename = os.fsync, folders.Path.rename

    def note(name, function):
        def noted(*args):
            events.append(name)
            return function(*args)

        return noted

    monkeypatch.setattr(os, "fsync", note("fsync", fsync))
    monkeypatch.setattr(folders.Path, "rename", note("rename", rename))
    write(tmp_path / "good")
    # Two files, each when it is closed and with what others may have written; the
    # manifest and the folder; the rename; the folder above.
    assert events == ["fsync"] * 6 + ["rename", "fsync"]


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
        check_folder(tmp_path / "good", ())


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    write(tmp_path / "good")
    (tmp_path / "tmp-better").mkdir()
    (tmp_path / "tmp-better" / "data.bin").write_bytes(b"half")
    (tmp_path / "tmp-config.json").write_bytes(b"half")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["good"]
