"""Files that are written completely or not at all: bytes, JSON, arrays."""

import hashlib
import io
import json
import os
import re
import uuid
from pathlib import Path
from typing import IO
from typing import TYPE_CHECKING
from typing import Any

if TYPE_CHECKING:
    import numpy as np

# Prefix of the names of unfinished files and folders.
TEMPORARY = "tmp-"
# Maximum bytes of a JSON file: more than any program of this package writes.
LARGEST_JSON = 1 << 26
# Names of files that are open, by their descriptors.
STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}
DESCRIPTOR = re.compile(r"(?:/dev/fd|/proc/self/fd)/(\d+)")
# Windows has no such flag; 0 has no effect.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class DamagedFolderError(ValueError):
    """A file of the folder is missing, cut short or not what was written."""


class NotPlainFileError(DamagedFolderError):
    """A link, a pipe or the like is in the place of a file or folder."""


def open_plain(
    path: str | os.PathLike[str],
    flags: int = os.O_RDONLY,
    below: Path | None = None,
) -> int:
    """Opens a plain file without following links, as the `opener` of `open` does.

    Args:
        path: the file.
        flags: those of `os.open`.
        below: a folder above the file. Links that lead to this folder are followed,
            links in it are not. By default the folder that the file is in.

    Returns:
        The descriptor.

    Raises:
        NotPlainFileError: a link, a pipe or the like is in its place.
        OSError: it cannot be opened.
    """
    path = Path(path)
    depth = len(path.relative_to(below or path.parent).parts)
    for folder in path.parents[: depth - 1]:
        if folder.is_symlink():
            raise not_plain_file(folder)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise not_plain_file(path)
    return os.open(path, flags | _NO_LINK, 0o666)


def not_plain_file(path: Path) -> NotPlainFileError:
    """The error about what is in the place of a file or folder."""
    return NotPlainFileError(
        f"{path.name} must be a plain file or folder, no link and no pipe: remove it, "
        f"or replace it by what it stands for. Received: {path}"
    )


def read_file(
    path: Path, below: Path | None = None, largest: int | None = None
) -> bytes:
    """The content of a plain file.

    Args:
        path: the file, which is opened by `open_plain`.
        below: see there.
        largest: maximum size in bytes.

    Raises:
        DamagedFolderError: it is larger.
        OSError: it cannot be read.
    """
    with open(open_plain(path, below=below), "rb") as file:
        if largest is not None and os.fstat(file.fileno()).st_size > largest:
            raise DamagedFolderError(
                f"{path.name} is larger than {largest:,} bytes. Received: {path}"
            )
        return file.read()


class NewFile(io.BufferedWriter):
    """A new file, which is on the disk itself once it is closed."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path, "x"))

    def close(self) -> None:
        """Flushes to the disk, not only to the operating system."""
        try:
            if not self.closed:
                self.flush()
                os.fsync(self.fileno())
        finally:
            super().close()


def is_stream(path: Path) -> bool:
    """Whether a path is that of a pipe, device or open file, such as `/dev/stdout`."""
    return path.exists() and (descriptor(path) is not None or not path.is_file())


def open_stream(path: Path, mode: str = "wb", **options: Any) -> IO[Any]:
    """A stream, opened for writing at its current position.

    Args:
        path: the stream.
        mode, **options: arguments of `open`.

    Raises:
        OSError: it cannot be written to.
    """
    number = descriptor(path)
    return open(path if number is None else os.dup(number), mode, **options)


def descriptor(path: Path) -> int | None:
    """The number of an open file by its name, such as 1 for `/dev/stdout`."""
    name = str(path.absolute())
    numbered = DESCRIPTOR.fullmatch(name)
    return int(numbered[1]) if numbered else STANDARD.get(name)


def write_file(path: Path, data: bytes) -> None:
    """Writes a file of the user, as `replace_file` does.

    A stream is written to, not replaced. Of a link, the target is replaced.

    Raises:
        OSError: the disk is full, or writing failed for another reason.
    """
    if is_stream(path):
        with open_stream(path) as stream:
            stream.write(data)
    else:
        replace_file(path.resolve(), data)


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file that is either complete or as it was before.

    A link itself is replaced, not its target.

    Raises:
        OSError: the disk is full, or writing failed for another reason.
    """
    draft = path.with_name(f"{TEMPORARY}{path.name}-{uuid.uuid4().hex[:8]}")
    try:
        with NewFile(draft) as file:
            file.write(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    flush(path.parent)


def read_json(path: Path, below: Path | None = None) -> Any:
    """The value in a JSON file.

    Args:
        path: the file, which is opened by `open_plain`.
        below: see there.

    Raises:
        DamagedFolderError: the file is missing, cut short, not a plain file or not
            JSON, or nested so deeply or so large that no program of this package wrote
            it.
        OSError: it cannot be read.
    """
    try:
        return json.loads(read_file(path, below, LARGEST_JSON))
    except (FileNotFoundError, NotADirectoryError):
        problem = "is missing"
    except RecursionError:
        problem = "is nested too deeply"
    except UnicodeDecodeError:
        problem = "is not text"
    except json.JSONDecodeError as error:
        problem = f"is cut short or not JSON ({error})"
    raise DamagedFolderError(f"{path.name} {problem}. Received: {path}")


def read_npz(path: Path) -> "dict[str, np.ndarray]":
    """The arrays in a `.npz` file by name, none of which is a pickled object.

    Raises:
        DamagedFolderError: the file holds something else.
        OSError: it cannot be read.
    """
    # Imported here: commands check their options before they need arrays.
    import numpy as np

    with open(path, "rb", opener=open_plain) as file:
        try:
            with np.load(file, allow_pickle=False) as entries:
                return {name: entries[name] for name in entries.files}
        # Crafted files raise errors of nearly every kind.
        except Exception as error:
            raise DamagedFolderError(
                f"{path.name} is not a file of arrays. Received: {path}"
            ) from error


def file_entry(path: Path, below: Path | None = None) -> dict[str, Any]:
    """Size and sha256 of a file; see `open_plain` for arguments and errors."""
    with open(open_plain(path, below=below), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return {"size": size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def file_size(path: Path, below: Path) -> int:
    """The bytes of a plain file; see `open_plain` for arguments and errors."""
    with open(open_plain(path, below=below), "rb") as file:
        return os.fstat(file.fileno()).st_size


def flush(path: Path) -> None:
    """Makes a file's content, or the names in a folder, survive a power cut."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows flushes what is open for writing
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
