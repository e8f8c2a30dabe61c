"""Lines of files, names for what is made of them, and the split that a text is in."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keras_attnvariants.utils.lines import byte_lines
from keras_attnvariants.utils.remembering import remembered_entry

_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def open_bytes(path: os.PathLike[str]) -> Iterator[io.BufferedIOBase]:
    """Opens a file for reading bytes, through gzip if its first bytes say so.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The gzip file turns out to be broken; raised while it is read.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no such file. Received: {path}")
    with open(path, "rb") as file:
        compressed = file.read(2) == _GZIP_MAGIC
    if not compressed:
        with open(path, "rb") as file:
            yield file
        return
    try:
        with gzip.open(path, "rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"Broken gzip file: {error}. Received: {path}") from error


def read_byte_lines(path: os.PathLike[str]) -> Iterator[bytes]:
    """Yields lines without their ends, see `keras_attnvariants.utils.lines`."""
    with open_bytes(path) as file:
        yield from byte_lines(file)


def fingerprint(files: Iterable[Path], *settings: Any) -> str:
    """A name for what is made from files, by their names and content alone."""
    digests = [(path.name, remembered_entry(path)["sha256"]) for path in files]
    text = json.dumps([digests, settings])
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def held_out_split(key: str) -> str:
    """Returns "train", or for 3 % each "validation" or "test", from a stable hash."""
    place = int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest()[:8]) % 100
    if place < 3:
        return "validation"
    return "test" if place < 6 else "train"
