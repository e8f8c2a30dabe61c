"""Reads single members of archives, and the formats of translation campaigns.

Members are streamed by name. No archive is ever unpacked, so that none can write
outside of the folder meant for it.
"""

from __future__ import annotations

import gzip
import html
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import ExitStack
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from typing import Any

from keras_attnvariants.data.registry import FetchError
from keras_attnvariants.data.splits import SPLITS
from keras_attnvariants.data.text_files import held_out_split
from keras_attnvariants.utils.lines import text_lines

_SEGMENT_TAG = re.compile(r"<(?P<closing>/?)seg\b[^<>]*>", re.IGNORECASE)
# No text is packed more tightly than this, unless it is short.
_HIGHEST_RATIO = 100
_ALWAYS_ALLOWED = 64_000_000
# Errors of Python's readers of archives; an encrypted member is a `RuntimeError`.
UNREADABLE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
)


class Bounded(io.RawIOBase):
    """A stream that raises `FetchError` if there is more than `limit` bytes of it."""

    def __init__(self, source: IO[bytes] | gzip.GzipFile, limit: int) -> None:
        self.name = getattr(source, "name", "")
        self._source, self._limit, self._left = source, limit, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise FetchError(
                f"{self.name} unpacks to more than {self._limit / 1e6:,.0f} MB."
            )
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def open_member(archive: Path, name: str) -> Iterator[IO[bytes]]:
    """Opens the member of a zip or tar archive whose path ends in `name`.

    Raises:
        FetchError: If the archive is broken, packed in a way that cannot be read or
            so tightly that it cannot be text, or has no such file.
    """
    limit = unpacked_limit(archive)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                member = _find(archive, opened.namelist(), name)
                with opened.open(member) as file:
                    yield io.BufferedReader(Bounded(file, limit))
        else:
            with tarfile.open(archive) as tar:
                files = {m.name: m for m in tar if m.isfile()}
                # None only for what is not a file.
                content = tar.extractfile(files[_find(archive, files, name)])
                if content is not None:
                    with content:
                        yield io.BufferedReader(Bounded(content, limit))
    except UNREADABLE as error:
        raise FetchError(f"{archive} is not a complete archive ({error}).") from error


def unpacked_limit(archive: Path) -> int:
    """Most bytes that a member of an archive may have."""
    return max(_ALWAYS_ALLOWED, _HIGHEST_RATIO * archive.stat().st_size)


def read_member(archive: Path, name: str) -> bytes:
    """Returns the content of a member, see `open_member`."""
    with open_member(archive, name) as file:
        return file.read()


def read_gzip_member(archive: Path, name: str) -> bytes:
    """Returns the content of a member that is a `.gz` file itself."""
    with open_member(archive, name) as file, gzip.open(file) as unpacked:
        return io.BufferedReader(Bounded(unpacked, unpacked_limit(archive))).read()


def member_lines(archive: Path, name: str) -> Iterator[str]:
    """Yields the lines of a text member."""
    with open_member(archive, name) as file:
        yield from text_lines(file)


def segments(archive: Path, name: str) -> list[str]:
    """Returns the sentences of an SGML or XML test set: its `<seg>` elements."""
    text = read_member(archive, name).decode("utf-8", "replace")
    return [" ".join(html.unescape(segment).split()) for segment in _segments(text)]


def _segments(text: str) -> Iterator[str]:
    """The texts between tags; the time is linear in their length, whatever they are."""
    start = None
    for tag in _SEGMENT_TAG.finditer(text):
        if not tag["closing"]:
            start = tag.end() if start is None else start
        elif start is not None:
            yield text[start : tag.start()]
            start = None


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes lines as UTF-8."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(line + "\n")


def write_held_out(
    into: Path,
    languages: tuple[str, str],
    pairs: Iterable[tuple[str, Sequence[str]]],
) -> None:
    """Writes pairs of texts into the split that the hash of their key gives."""
    with ExitStack() as stack:
        files = {
            (split, language): stack.enter_context(
                open(into / f"{split}.{language}", "w", encoding="utf-8", newline="\n")
            )
            for split in SPLITS
            for language in languages
        }
        for key, texts in pairs:
            split = held_out_split(key)
            for language, text in zip(languages, texts, strict=True):
                files[split, language].write(text + "\n")


def _find(archive: Path, members: Iterable[str], name: str) -> str:
    for member in members:
        if member == name or member.endswith(f"/{name}"):
            return member
    raise FetchError(f"{archive} has no file {name}.")
