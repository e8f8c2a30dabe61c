"""The cache: its location, its folders, and remembered digests of large files."""

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import replace_file
from keras_attnvariants.utils.folders import FolderWriter
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import new_folder

# Largest file in bytes that is read each time, which takes a fifth of a second.
LARGEST_READ = 1 << 28
# Seconds within which a file could be written to twice with one time stamp.
_TICK = 2.0


def default_cache() -> Path:
    """The folder of all caches: `KAV_CACHE`, or one in the home of the user.

    Raises:
        ValueError: the user has no home, and none of the variables is set.
    """
    if folder := os.environ.get("KAV_CACHE"):
        return Path(folder)
    if folder := os.environ.get("XDG_CACHE_HOME"):
        return Path(folder) / "keras_attnvariants"
    try:
        return Path.home() / ".cache" / "keras_attnvariants"
    except RuntimeError as error:
        raise ValueError(
            "This user has no home: name a folder for caches by the environment "
            "variable KAV_CACHE."
        ) from error


def cached_folder(path: Path, write: Callable[[FolderWriter], None]) -> Path:
    """A folder of a cache: written if it is missing, and anew if it is damaged.

    A large file that has not changed since it was checked is not read again;
    `check_folder` does read it.

    Args:
        path: the folder. If it is damaged, one line on standard error says so.
        write: writes the files, which must be the same at each call.

    Returns:
        `path`, a folder that is as it was written.
    """
    try:
        check_folder(path, (), remembered_entry)
    except DamagedFolderError as error:
        damaged = path.is_dir()
        if damaged:
            print(f"A damaged cache is made anew: {error}", file=sys.stderr)
        with new_folder(path, replace=damaged) as writer:
            write(writer)
    return path


def remembered_entry(path: Path, below: Path | None = None) -> dict[str, Any]:
    """Size and sha256 of a file, as `file_entry` gives them.

    A large file is not read again if its size, its time stamps and its place on the
    disk have not changed since it was read. The cache keeps the result.

    A file of the user may be a link; a file in one of our folders, `below`, may not.
    """
    if below is None:
        if not path.exists():
            raise FileNotFoundError(f"There is no such file. Received: {path}")
        path = path.resolve()
    stamp = _stamp(path)
    if stamp[0] <= LARGEST_READ:
        return file_entry(path, below)
    key = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:24]
    memory = default_cache() / "remembered" / f"{key}.json"
    with contextlib.suppress(DamagedFolderError, OSError, TypeError, KeyError):
        known = read_json(memory)
        if known["stamp"] == stamp:
            return dict(known["found"])
    found = file_entry(path, below)
    is_settled = time.time() - path.stat().st_mtime > _TICK
    if is_settled and _stamp(path) == stamp:
        record = {"file": str(path), "stamp": stamp, "found": found}
        # A cache that cannot be written to only costs time.
        with contextlib.suppress(OSError):
            memory.parent.mkdir(parents=True, exist_ok=True)
            replace_file(memory, json.dumps(record).encode())
    return found


def _stamp(path: Path) -> list[int]:
    """Numbers that change when a file is written to or replaced."""
    status = path.stat()
    times = [status.st_mtime_ns, status.st_ctime_ns]
    return [status.st_size, *times, status.st_dev, status.st_ino]
