"""Reads single members of archives, and the formats of translation campaigns.

Members are streamed by name. No archive is ever unpacked, so that none can write
outside of the folder meant for it.
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
from typing import IO

from keras_attnvariants.data.registry import FetchError
from keras_attnvariants.utils.lines import text_lines

_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)


@contextmanager
def open_member(archive: Path, name: str) -> Iterator[IO[bytes]]:
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
            with tarfile.open(archive) as tar:
                files = {m.name: m for m in tar if m.isfile()}
                # None only for what is not a file.
                content = tar.extractfile(files[_find(archive, files, name)])
                if content is not None:
                    with content:
                        yield content
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise FetchError(f"{archive} is not a complete archive ({error}).") from error


def read_member(archive: Path, name: str) -> bytes:
    """Returns the content of a member, see `open_member`."""
    with open_member(archive, name) as file:
        return file.read()


def member_lines(archive: Path, name: str) -> Iterator[str]:
    """Yields the lines of a text member."""
    with open_member(archive, name) as file:
        yield from text_lines(file)


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
