"""Files that are whole on disk or as they were before: bytes, JSON, records, CSV."""

import csv
import dataclasses
import hashlib
import io
import json
import math
import os
import re
import uuid
from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path
from typing import IO
from typing import Any
from typing import TypeVar

T = TypeVar("T")

# Files and folders whose names begin with this were not finished.
TEMPORARY = "tmp-"
# Bytes of a JSON file: more than any program of this package writes.
LARGEST_JSON = 1 << 26
# Names of files that are open, by their descriptors.
STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}
DESCRIPTOR = re.compile(r"(?:/dev/fd|/proc/self/fd)/(\d+)")


class DamagedFolderError(ValueError):
    """A file of the folder is missing, cut short or not what was written."""


class HashedFile(io.RawIOBase):
    """A write-only file that knows the size and sha256 of what was written to it."""

    def __init__(self, path: Path) -> None:
        # Unbuffered: a full disk raises in `write`, and nowhere else.
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
        """Size and sha256 of what was written."""
        return {"size": self._size, "sha256": self._sha256.hexdigest()}


def is_stream(path: Path) -> bool:
    """Whether a path is that of a pipe, a device or an open file, as `/dev/stdout`."""
    return path.exists() and (descriptor(path) is not None or not path.is_file())


def open_stream(path: Path, mode: str = "wb", **options: Any) -> IO[Any]:
    """A stream, to be written to from where it stands.

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
    """Write a file that is either complete or as it was before.

    A stream is written to, and stays what it is. So does a link: what it points to is
    replaced.

    Raises:
        OSError: the disk is full, or writing failed for another reason.
    """
    if is_stream(path):
        with open_stream(path) as stream:
            stream.write(data)
        return
    path = path.resolve()
    draft = path.with_name(f"{TEMPORARY}{path.name}-{uuid.uuid4().hex[:8]}")
    try:
        with HashedFile(draft) as file:
            file.write(data)
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
    flush(path.parent)


def read_json(path: Path) -> Any:
    """The value in a JSON file.

    Raises:
        DamagedFolderError: the file is missing, cut short, no JSON, or nested so
            deeply or so large that no program of this package wrote it.
    """
    try:
        if path.stat().st_size <= LARGEST_JSON:
            return json.loads(path.read_bytes())
        problem = f"is larger than {LARGEST_JSON:,} bytes"
    except FileNotFoundError:
        problem = "is missing"
    except RecursionError:
        problem = "is nested too deeply"
    except UnicodeDecodeError:
        problem = "is no text"
    except json.JSONDecodeError as error:
        problem = f"is cut short or no JSON ({error})"
    raise DamagedFolderError(f"{path.name} {problem}. Received: {path}")


def write_record(path: Path, record: Any) -> None:
    """Writes a dataclass as JSON; what is not finite becomes `null`.

    Raises:
        OSError: the file cannot be written.
    """
    values = _without_nan(dataclasses.asdict(record))
    text = json.dumps(values, ensure_ascii=False, allow_nan=False)
    write_file(path, f"{text}\n".encode())


def _without_nan(value: Any) -> Any:
    """The same with `None` for each number that is not finite, and plain containers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_without_nan(item) for item in value]
    return value


def read_record(path: Path, kind: type[T]) -> T:
    """The dataclass in a JSON file that `write_record` wrote.

    Raises:
        DamagedFolderError: there is none that can be read.
    """
    # Late: few need it.
    from pydantic import TypeAdapter

    values = read_json(path)
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValueError as error:
        raise DamagedFolderError(
            f"{path.name} is no {kind.__name__}: remove it. Received: {path}"
        ) from error


def file_entry(path: Path) -> dict[str, Any]:
    """Size and sha256 of a file, as `HashedFile.entry` gives them."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return {"size": size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def flush(path: Path) -> None:
    """Make a file's content, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# A spreadsheet takes these for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    """Writes rows as UTF-8, separated by commas, with `\\n` after each.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.
    Numbers stay as they are.

    Args:
        path: the file, which appears complete or not at all.
        rows: texts, numbers or `None` each.

    Raises:
        OSError: the file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([harmless(cell) for cell in row] for row in rows)
    write_file(path, text.getvalue().encode("utf-8"))


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    if not (isinstance(cell, str) and cell.startswith(_FORMULA)):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
