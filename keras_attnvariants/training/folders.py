"""Folders that are either complete and intact on disk, or not there.

A folder is written under a temporary name beside its place (`tmp-<name>`), every file
is flushed to the disk, `manifest.json` with size and sha256 of each comes last, and one
rename makes it appear. What a killed process leaves behind is a `tmp-*` folder only.
"""

import contextlib
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
TEMPORARY = "tmp-"


class DamagedFolderError(ValueError):
    """A file of the folder is missing, cut short or not what was written."""


class _HashedFile(io.RawIOBase):
    """Write-only file that keeps the size and sha256 of what was handed to it."""

    def __init__(self, path: Path) -> None:
        # Unbuffered: a full disk shows when it is written to, and only then.
        self._file = path.open("wb", buffering=0)
        self._sha256 = hashlib.sha256()
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view):
            done += self._file.write(view[done:])
        self._sha256.update(view)
        self._size += done
        return done

    def close(self) -> None:
        """Flush to the disk itself, not only to the operating system."""
        if self.closed:
            return
        try:
            os.fsync(self._file.fileno())
        finally:
            self._file.close()
            super().close()

    def entry(self) -> dict[str, Any]:
        return {"size": self._size, "sha256": self._sha256.hexdigest()}


class FolderWriter:
    """Hands out the files of a folder that is being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._manifest: dict[str, dict[str, Any]] = {}

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[io.RawIOBase]:
        """A write-only binary file; it takes its place in the manifest when closed."""
        with _HashedFile(self._path / name) as file:
            yield file
        self._manifest[name] = file.entry()

    def write_json(self, name: str, value: Any) -> None:
        """One file with a JSON value."""
        text = json.dumps(value, indent=1)
        with self.open(name) as file:
            file.write(text.encode())

    def write_manifest(self) -> None:
        """The last file of the folder: size and sha256 of all others."""
        self.write_json(MANIFEST, dict(self._manifest))


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[FolderWriter]:
    """Context in which a folder is written; it appears at `path` at the end.

    A folder of that name is replaced. If anything fails, what was written is removed
    and the folder of that name stays as it was.

    Args:
        path: where the folder is to appear.

    Raises:
        OSError: the disk is full, or writing failed for another reason.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(TEMPORARY + path.name)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    try:
        writer = FolderWriter(draft)
        yield writer
        writer.write_manifest()
        _sync_folder(draft)
        if path.exists():
            # A rename cannot replace a folder that has files in it.
            old = path.with_name(f"{TEMPORARY}old-{path.name}")
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)
        draft.rename(path)
        _sync_folder(path.parent)
        shutil.rmtree(path.with_name(f"{TEMPORARY}old-{path.name}"), ignore_errors=True)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def check_folder(path: Path) -> None:
    """Compare every file with the manifest.

    Raises:
        DamagedFolderError: a file is missing, cut short or changed.
    """
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        for name, entry in manifest.items():
            with (path / name).open("rb") as file:
                if os.fstat(file.fileno()).st_size != entry["size"]:
                    raise DamagedFolderError(f"{name} has the wrong size")
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != entry["sha256"]:
                raise DamagedFolderError(f"{name} is not what was written")
    except DamagedFolderError:
        raise
    except FileNotFoundError as error:
        raise DamagedFolderError(f"{Path(error.filename).name} is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedFolderError(f"{MANIFEST} cannot be read") from error


def remove_leftovers(directory: Path) -> None:
    """Remove what a killed process had not finished writing."""
    for leftover in directory.glob(f"{TEMPORARY}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def write_file(path: Path, data: bytes) -> None:
    """Write a file that is either whole or as it was before."""
    draft = path.with_name(TEMPORARY + path.name)
    with _HashedFile(draft) as file:
        file.write(data)
    draft.rename(path)
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
