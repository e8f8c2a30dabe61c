"""Reads single members of archives and the formats of translation campaigns.

Members are streamed by name; no archive is ever unpacked, so that nothing in one
can be written outside the folder meant.
"""

from __future__ import annotations

import html
import re
import tarfile
import zipfile
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from keras_attnvariants.data.registry import FetchError

_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)


@contextmanager
def open_member(archive: Path, name: str) -> Iterator[BinaryIO]:
    """Opens the member of a zip or tar archive whose path ends in `name`.

    Raises:
        FetchError: If the archive is broken or has no such file.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                member = _find(archive, opened.namelist(), name)
                with opened.open(member) as file:
                    yield file
        else:
            with tarfile.open(archive) as opened:
                files = {m.name: m for m in opened if m.isfile()}
                with opened.extractfile(files[_find(archive, files, name)]) as file:
                    yield file
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise FetchError(f"{archive} is no whole archive ({error}).") from error


def read_member(archive: Path, name: str) -> bytes:
    """Returns the content of a member, see `open_member`."""
    with open_member(archive, name) as file:
        return file.read()


def member_lines(archive: Path, name: str) -> Iterator[str]:
    """Yields the lines of a text member."""
    with open_member(archive, name) as file:
        for line in file:
            yield line.decode("utf-8", "replace").rstrip("\r\n")


def segments(archive: Path, name: str) -> list[str]:
    """Returns the sentences of an SGML or XML test set: its `<seg>` elements."""
    text = read_member(archive, name).decode("utf-8", "replace")
    return [
        " ".join(html.unescape(segment).split()) for segment in _SEGMENT.findall(text)
    ]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes lines as UTF-8."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(line + "\n")


def _find(archive: Path, members: Iterable[str], name: str) -> str:
    for member in members:
        if member == name or member.endswith(f"/{name}"):
            return member
    raise FetchError(f"{archive} has no file {name}.")
