"""Reads single members of archives, and sentences in formats of evaluation campaigns.

Members are streamed by name, so that no archive can write a file.
"""

from __future__ import annotations

import gzip
import html
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from typing import Any

from keras_attnvariants.data.sources.download import FetchError
from keras_attnvariants.utils.lines import text_lines

_OPENING = re.compile(r"<seg\b[^<>]*>", re.IGNORECASE)
_CLOSING = re.compile("</seg", re.IGNORECASE)
TARS = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
# Text does not compress better than this, unless it is short.
_HIGHEST_RATIO = 100
_ALWAYS_ALLOWED = 64_000_000
# Errors of Python's readers of archives; an encrypted member is a `RuntimeError`.
_UNREADABLE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
)


class NoMemberError(FetchError):
    """An archive has no such member."""


@contextmanager
def archive_errors(archive: Path) -> Iterator[None]:
    """Context that turns the error of a broken archive into a `FetchError`."""
    try:
        yield
    except _UNREADABLE as error:
        message = f"{archive} is not a complete archive ({error})."
        raise FetchError(message) from error


@contextmanager
def open_member(archive: Path, name: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Opens the member of a zip or tar archive whose path ends in `name`.

    Without a name, it opens what is in a `.gz` file that is not an archive.

    Raises:
        NoMemberError: If the archive has no such file.
        FetchError: If the archive is broken, or packed in a way that cannot be read or
            so tightly that it cannot be text.
    """
    with archive_errors(archive):
        if not name:
            with gzip.open(archive) as file:
                yield file
            return
        for _, stream in members_of(archive, lambda m: f"/{m}".endswith(f"/{name}")):
            yield stream
            return
    raise NoMemberError(f"{archive} has no file {name}.")


def members_of(
    archive: Path, is_wanted: Callable[[str], bool]
) -> Iterator[tuple[str, Any]]:
    """Names and streams of some files in a zip or tar archive, in its order.

    Raises:
        FetchError: one is packed so tightly that it cannot be text.
    """
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                if is_wanted(info.filename):
                    check_size(archive, info.filename, info.file_size)
                    yield info.filename, packed.open(info)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and is_wanted(member.name):
                check_size(archive, member.name, member.size)
                yield member.name, tar.extractfile(member)


def check_size(archive: Path, name: str, size: int) -> None:
    """Raises `FetchError` if a member is packed too tightly to be text."""
    limit = max(_ALWAYS_ALLOWED, _HIGHEST_RATIO * archive.stat().st_size)
    if size > limit:
        raise FetchError(
            f"{name} in {archive} unpacks to more than {limit / 1e6:,.0f} MB."
        )


def read_member(archive: Path, name: str) -> bytes:
    """Returns the content of a member, unpacked if it is a `.gz` file itself."""
    with open_member(archive, name) as file:
        if not name.endswith(".gz"):
            return file.read()
        content = bytearray()
        with gzip.open(file) as unpacked:
            while block := unpacked.read(1 << 20):
                content += block
                check_size(archive, name, len(content))
        return bytes(content)


def member_lines(archive: Path, name: str) -> Iterator[str]:
    """Yields the sentences of a member, in the format that its name implies.

    They are the segments of a test set in SGML or XML; the lines of a training set of
    talks (`.tags.` in its name) without descriptions such as `<title>…</title>`;
    otherwise all lines.
    """
    with open_member(archive, name) as file:
        if name.endswith((".sgm", ".xml")):
            yield from _segments(file.read().decode("utf-8", "replace"))
            return
        lines = text_lines(file)
        if ".tags." in name:
            stripped = (line.strip() for line in lines)
            lines = (line for line in stripped if not line.startswith("<"))
        yield from lines


def _segments(text: str) -> Iterator[str]:
    """The texts of `<seg>` elements, in linear time for any tags."""
    for part in _OPENING.split(text)[1:]:
        segment, *rest = _CLOSING.split(part, maxsplit=1)
        if rest:
            yield " ".join(html.unescape(segment).split())
