"""Folders that are either complete and intact on disk, or not there.

A folder is written under a temporary name beside its place (`tmp-<name>-<random>`).
Every file is flushed to the disk, `manifest.json` with the size and sha256 of each
file comes last, and one rename makes the folder appear. A killed process or a power
cut leaves a `tmp-*` folder and nothing else.
"""

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_attnvariants.utils.files import TEMPORARY
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import NewFile
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.files import file_size
from keras_attnvariants.utils.files import flush
from keras_attnvariants.utils.files import not_plain_file
from keras_attnvariants.utils.files import read_json

MANIFEST = "manifest.json"
# Where the old folder waits while its replacement takes its name.
REPLACED = f"{TEMPORARY}old-"


class FolderWriter:
    """The files of a folder that is being written.

    Attributes:
        path: temporary place of the folder. Other libraries may write files and
            subfolders there; they are flushed and listed in the manifest as well.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, name: str) -> NewFile:
        """Opens a new binary file for writing."""
        return NewFile(self.path / name)

    def write_bytes(self, name: str, data: bytes | memoryview) -> None:
        """Writes a file with these bytes."""
        with self.open(name) as file:
            file.write(data)

    def write_json(self, name: str, value: Any) -> None:
        """Writes a file with a JSON value."""
        self.write_bytes(name, json.dumps(value, indent=1).encode())

    def finish(self) -> None:
        """Writes the manifest, and flushes what is not on the disk yet."""
        manifest = {}
        for path in sorted(self.path.rglob("*")):
            flush(path)
            if not path.is_dir():
                manifest[path.relative_to(self.path).as_posix()] = file_entry(path)
        self.write_json(MANIFEST, manifest)
        flush(self.path)


def check_new(path: str | os.PathLike[str], name: str = "path") -> Path:
    """The path of a folder that does not exist.

    Args:
        path: the folder.
        name: the argument that names it.

    Raises:
        FileExistsError: something is there.
    """
    path = Path(path)
    if path.exists() or path.is_symlink():
        raise FileExistsError(
            f"`{name}` must not exist: name another folder, or remove this one. "
            f"Received: {path}"
        )
    return path


@contextlib.contextmanager
def new_folder(path: Path, *, replace: bool = True) -> Iterator[FolderWriter]:
    """Context in which a folder is written; it appears at `path` at the end.

    If anything fails, what was written is removed, and a folder that was there
    before stays as it was.

    Args:
        path: where the folder is to appear.
        replace: whether to replace a folder that exists at the end; `False` suits
            caches, whose content is the same whichever process wrote it first.

    Raises:
        NotADirectoryError: `path` is a file.
        OSError: the disk is full, or writing failed for another reason.
    """
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"`path` must be a folder. Received: the file {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{TEMPORARY}{path.name}-{uuid.uuid4().hex[:8]}")
    draft.mkdir()
    try:
        writer = FolderWriter(draft)
        yield writer
        writer.finish()
        restore(path)
        _place(draft, path, replace)
        flush(path.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        restore(path)
    _remove(_old(path))


def read_manifest(path: Path) -> dict[str, dict[str, Any]]:
    """Size and sha256 of every file of a folder, by name.

    Raises:
        DamagedFolderError: there is no manifest, it lists nothing, or it cannot be
            read.
        OSError: it must not be read.
    """
    restore(path)
    manifest = read_json(path / MANIFEST, below=path.parent)
    entries = manifest.values() if isinstance(manifest, dict) else [manifest]
    is_entry = [isinstance(e, dict) and e.keys() == {"size", "sha256"} for e in entries]
    if is_entry and all(is_entry):
        return manifest
    raise DamagedFolderError(
        f"{MANIFEST} must list the files of the folder, each with size and sha256. "
        f"Received: {path}"
    )


def check_folder(
    path: Path,
    required: Collection[str],
    entry_of: Callable[[Path, Path], dict[str, Any]] = file_entry,
) -> None:
    """Compares every file of a folder with the manifest.

    Neither the folder nor what is in it may be a link.

    Args:
        path: the folder.
        required: names that the manifest has to list: files that a folder of its kind
            cannot do without.
        entry_of: finds size and sha256 of a file, as `file_entry` does.

    Raises:
        DamagedFolderError: a file is missing, cut short or changed, or a link.
        OSError: a file must not be read.
    """
    manifest = read_manifest(path)
    for name in required:
        if name not in manifest:
            raise DamagedFolderError(f"{MANIFEST} must list {name!r}. Received: {path}")
    for name, entry in manifest.items():
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise DamagedFolderError(
                f"{MANIFEST} lists a file outside the folder. Received: {name!r}"
            )
        try:
            # A file that is too large is not read.
            found = {"size": file_size(path / name, path.parent)}
            if found["size"] == entry["size"]:
                found = entry_of(path / name, path.parent)
        except FileNotFoundError as error:
            raise DamagedFolderError(f"{name} is missing. Received: {path}") from error
        for key in ("size", "sha256"):
            if entry[key] != found[key]:
                raise DamagedFolderError(
                    f"{name} is not what was written: its {key} differs from that in "
                    f"{MANIFEST}. Received: {path}"
                )


def names_in(path: Path) -> list[str]:
    """The names in a folder that is not a link, sorted; none if there is no folder.

    Raises:
        NotPlainFileError: it is a link, or no folder.
    """
    if not os.path.lexists(path):
        return []
    if path.is_symlink() or not path.is_dir():
        raise not_plain_file(path)
    return sorted(os.listdir(path))


def remove_leftovers(directory: Path) -> None:
    """Removes what a killed process had not finished writing.

    Raises:
        NotPlainFileError: the folder is a link.
    """
    for name in names_in(directory):
        if name.startswith(REPLACED):
            restore(directory / name.removeprefix(REPLACED))
    for name in names_in(directory):
        if name.startswith(TEMPORARY):
            _remove(directory / name)


def _remove(path: Path) -> None:
    """Removes a file, a link or a folder, and nothing that a link leads to."""
    with contextlib.suppress(OSError):
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


def restore(path: Path) -> None:
    """Gives a folder its name back if the process that replaced it was killed."""
    old = _old(path)
    if old.exists() and not path.exists():
        # Another process may be doing the same.
        with contextlib.suppress(OSError):
            old.rename(path)


def _place(draft: Path, path: Path, replace: bool) -> None:
    """Renames `draft` to `path`. A rename cannot replace a folder with files in it."""
    if path.is_symlink():
        path.unlink()
    if replace and path.exists():
        _move_away(path)
    try:
        draft.rename(path)
    except OSError:
        if not path.is_dir():
            raise
        if replace:
            # A reader found no folder and restored the old one.
            _move_away(path)
            draft.rename(path)


def _move_away(path: Path) -> None:
    _remove(_old(path))
    path.rename(_old(path))


def _old(path: Path) -> Path:
    return path.with_name(REPLACED + path.name)
