"""One process at a time works in a folder, and others are told which."""

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from keras_attnvariants.utils.files import NotPlainFileError
from keras_attnvariants.utils.locks import LOCK
from keras_attnvariants.utils.locks import FolderInUseError
from keras_attnvariants.utils.locks import lock_folder

HOLD = """
import sys, time
from pathlib import Path
from keras_attnvariants.utils.locks import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_another_process_is_told_who_holds_it_until_that_is_killed(tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        holder = json.loads((folder / LOCK).read_text())
        assert (holder["pid"], holder["host"]) == (process.pid, socket.gethostname())
        who = f"in use by process {process.pid} on {holder['host']} since"
        with pytest.raises(FolderInUseError, match=who), lock_folder(folder):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (folder / LOCK).exists()
    with lock_folder(folder):
        assert json.loads((folder / LOCK).read_text())["pid"] == os.getpid()
    assert list(folder.iterdir()) == []


def test_a_folder_is_locked_once_in_a_process(tmp_path):
    with lock_folder(tmp_path):
        inside = tmp_path / "sub" / ".."
        message = f"process {os.getpid()}"
        with pytest.raises(FolderInUseError, match=message), lock_folder(inside):
            pass
        assert (tmp_path / LOCK).exists()
    assert tmp_path.is_dir()


def test_a_folder_is_waited_for(tmp_path):
    left = threading.Event()
    with lock_folder(tmp_path):
        other = threading.Thread(target=wait_and_note, args=(tmp_path, left))
        other.start()
        assert not left.wait(0.3)
    other.join(timeout=20)
    assert left.is_set()


def wait_and_note(folder, left):
    with lock_folder(folder, wait=True):
        left.set()


def test_a_new_folder_in_which_nothing_was_written_goes_again(tmp_path):
    folder = tmp_path / "new"
    with pytest.raises(KeyError), lock_folder(folder):
        raise KeyError
    assert not folder.exists()
    with lock_folder(folder):
        (folder / "file").write_text("content")
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_a_file_that_its_holder_removes_is_not_a_lock(tmp_path, monkeypatch):
    """The holder unlinks the file after it is opened here and before it is locked."""
    flock, calls = fcntl.flock, []

    def unlinked(descriptor, operation):
        if not calls:
            (tmp_path / LOCK).unlink()
        calls.append(descriptor)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", unlinked)
    with lock_folder(tmp_path):
        assert len(calls) == 2 and (tmp_path / LOCK).exists()


def test_a_file_system_without_locks_is_reported(tmp_path, monkeypatch, capsys):
    def unsupported(descriptor, operation):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with lock_folder(tmp_path):
        pass
    [line] = capsys.readouterr().err.splitlines()
    assert f"{tmp_path / LOCK} cannot be locked" in line


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "theirs").write_text("content")
    (tmp_path / "run" / LOCK).symlink_to(tmp_path / "theirs")
    with (
        pytest.raises(NotPlainFileError, match="no link"),
        lock_folder(tmp_path / "run"),
    ):
        pass
    assert (tmp_path / "theirs").read_text() == "content"
