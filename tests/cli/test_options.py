"""Checks of places to write to."""

import os
from pathlib import Path

import pytest

from keras_attnvariants.cli.options import check_output_file
from keras_attnvariants.cli.options import check_output_folder


def test_places_to_write_to(tmp_path):
    file = tmp_path / "file"
    file.touch()
    check_output_file(None)
    check_output_file(file)
    check_output_file(tmp_path / "new")
    check_output_folder("--run", tmp_path)
    check_output_folder("--run", tmp_path / "a" / "new" / "folder")
    with pytest.raises(IsADirectoryError):
        check_output_file(tmp_path)
    with pytest.raises(FileNotFoundError, match="No such folder"):
        check_output_file(tmp_path / "no" / "new")
    with pytest.raises(NotADirectoryError, match="`--run` must be a folder"):
        check_output_folder("--run", file / "run")


def test_read_only_places(tmp_path, monkeypatch):
    # For root, who may run this, no place is read-only.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="No permission"):
        check_output_file(tmp_path / "new")
    with pytest.raises(PermissionError, match="No permission.*Received: .*run"):
        check_output_folder("--run", tmp_path / "run")


def test_a_relative_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_output_folder("--run", Path("runs/first"))
    check_output_file(Path("lines"))
