"""Text files: their lines, encoding, fingerprint and held-out split."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import ExitStack
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from typing import Any

from keras_attnvariants.utils.caches import remembered_entry
from keras_attnvariants.utils.lines import byte_lines
from keras_attnvariants.utils.lines import on_one_line
from keras_attnvariants.utils.lines import text_lines

_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def open_bytes(path: os.PathLike[str]) -> Iterator[io.BufferedIOBase]:
    """Opens a file for reading bytes, through gzip if its first bytes say so.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is a folder or a pipe; or the gzip file turns out to be broken,
            which is raised while it is read.
    """
    check_file(path, "file")
    try:
        with open(path, "rb") as file:
            is_packed = file.peek(2)[:2] == _GZIP_MAGIC
            yield gzip.GzipFile(fileobj=file) if is_packed else file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"Broken gzip file: {error}. Received: {path}") from error


def check_file(path: os.PathLike[str] | str, what: str) -> None:
    """Raises unless a path is that of an existing file."""
    if not Path(path).exists():
        raise FileNotFoundError(f"There is no such {what}. Received: {path}")
    if not Path(path).is_file():
        raise ValueError(f"It must be a file, not a folder or pipe. Received: {path}")


def read_byte_lines(path: os.PathLike[str]) -> Iterator[bytes]:
    """Yields lines without their ends, see `keras_attnvariants.utils.lines`."""
    with open_bytes(path) as file:
        yield from byte_lines(file)


def read_text_lines(path: os.PathLike[str]) -> Iterator[str]:
    """Yields lines as text; bytes that are not UTF-8 become U+FFFD."""
    with open_bytes(path) as file:
        yield from text_lines(file)


def write_splits(into: Path, lines: Iterable[tuple[str, str, str]]) -> None:
    """Adds lines to the files `<split>.<language>` of a folder.

    Args:
        into: the folder.
        lines: split, language and text of each. A text with line ends becomes one line.
    """
    files: dict[str, IO[str]] = {}
    with ExitStack() as stack:
        for split, language, text in lines:
            name = f"{split}.{language}"
            if name not in files:
                opened = (into / name).open("a", encoding="utf-8", newline="\n")
                files[name] = stack.enter_context(opened)
            files[name].write(on_one_line(text) + "\n")


def fingerprint(files: Iterable[Path], *settings: Any) -> str:
    """A digest of the names and contents of files, and of settings."""
    digests = [(path.name, remembered_entry(path)["sha256"]) for path in files]
    text = json.dumps([digests, settings])
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def held_out_split(key: str) -> str:
    """Returns "train", or for 3 % each "validation" or "test", from a stable hash."""
    place = int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest()[:8]) % 100
    if place < 3:
        return "validation"
    return "test" if place < 6 else "train"


_SAMPLE_BYTES = 1 << 16
_ADVICE = (
    "`grep -axv '.*'` shows the lines that are not UTF-8; if the whole file is in one "
    "other encoding, `file --mime-encoding` guesses which, and `iconv -f ENCODING "
    "-t UTF-8` converts it."
)


def check_text_file(path: Path, max_invalid: float = 0.01) -> None:
    """Raises unless a file is UTF-8 text, except for a few lines.

    Args:
        path: The file, plain or `.gz`.
        max_invalid: Largest share of lines that are not UTF-8.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is binary or in another encoding. The message says how to find
            out the encoding and how to convert the file.
    """
    with open_bytes(path) as file:
        sample = file.read(_SAMPLE_BYTES)
    text = sample.decode("utf-8", "replace")
    odd = sum(c < " " and c not in "\t\n\v\f\r" for c in text)
    # A few control characters are common in corpora; a tenth of all is not.
    if odd > 0.1 * len(text):
        raise ValueError(
            "A corpus file must be UTF-8 text; this one is binary, or has two or four "
            f"bytes for each character, as UTF-16. {_ADVICE} Received: {path}"
        )
    if b"\r" in sample.rstrip(b"\r") and b"\n" not in sample:
        raise ValueError(
            "Lines must end in LF or CR LF; those of this file end in CR alone. "
            f"Convert it with `tr '\\r' '\\n'`. Received: {path}"
        )
    lines = invalid = 0
    for line in read_byte_lines(path):
        lines += 1
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            invalid += 1
    if invalid > max_invalid * lines:
        raise ValueError(
            f"{invalid / lines:.1%} of the lines are not UTF-8, more than the "
            f"{max_invalid:.1%} that `max_invalid` allows. {_ADVICE} Received: {path}"
        )
