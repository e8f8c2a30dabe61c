"""Writes translations to a stream, or to a file that is continued after a kill."""

import glob
import hashlib
import os
import sys
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from keras_attnvariants.utils.files import TEMPORARY
from keras_attnvariants.utils.files import flush
from keras_attnvariants.utils.files import is_stream
from keras_attnvariants.utils.files import open_stream
from keras_attnvariants.utils.lines import on_one_line
from keras_attnvariants.utils.lines import without_controls
from keras_attnvariants.utils.locks import open_locked
from keras_attnvariants.utils.records import read_record
from keras_attnvariants.utils.records import write_record

# Suffixes of the files with the lines so far, and with the note about them.
PART, NOTE = ".part", ".part.json"

# By their source, such as an option; values are shown to the user.
Settings = dict[str, bool | str | int | float | None]


@dataclass(frozen=True)
class Note:
    """The state of an incomplete file.

    Attributes:
        lines: number of valid lines.
        bytes: number of bytes in these lines.
        read: sha256 of the texts that they translate.
        settings: everything else that the translations depend on.
    """

    lines: int
    bytes: int
    read: str
    settings: Settings


class LineWriter:
    """Writes a line per translation to a stream.

    Attributes:
        lines: number of lines written.
    """

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.lines = 0

    def rest(self, texts: Iterable[str]) -> Iterator[str]:
        """The texts whose translations are not written yet."""
        return iter(texts)

    def write(self, texts: Sequence[str], translations: Sequence[str]) -> None:
        """Writes the translations of the next texts."""
        lines = (without_controls(on_one_line(line)) for line in translations)
        self.file.writelines(f"{line}\n" for line in lines)
        self.file.flush()
        self.lines += len(texts)


class PartialFile(LineWriter):
    """Writes a file that appears under its name when it is complete.

    Until then, its lines are in `NAME.part`, and `NAME.part.json` states how many of
    them are valid, and their sources. Both are flushed to the disk after every call of
    `write`. Only one process at a time can write the file.

    Args:
        path: path of the complete file. An existing one is replaced at the end.
        settings: everything but the texts that the translations depend on.
        resume: whether to continue the file of an earlier process.

    Raises:
        ValueError: the existing lines have other settings, or were changed.
        OSError: the file cannot be written, or another process is writing it.
    """

    def __init__(self, path: Path, settings: Settings, resume: bool) -> None:
        self.path = path.resolve()
        self.part = self.path.with_name(self.path.name + PART)
        self.note = self.path.with_name(self.path.name + NOTE)
        self.settings = settings
        was_there = self.part.exists()
        try:
            descriptor = open_locked(self.part)
        except BlockingIOError:
            raise OSError(
                "Another process is writing this file: wait until it has ended, or "
                f"choose another one. Received: {self.part}"
            ) from None
        super().__init__(os.fdopen(descriptor, "w", encoding="utf-8", newline="\n"))
        self._digest = hashlib.sha256()  # of the texts whose translations are written
        self._expected = self._digest.hexdigest()
        try:
            resumes = resume and was_there and self.note.exists()
            size = self._read_note() if resumes else 0
            if self.path.exists():
                os.fchmod(self.file.fileno(), self.path.stat().st_mode & 0o777)
            self.file.truncate(size)
            self.file.seek(size)
            if not resumes:
                self._write_note()
        except BaseException:
            self.file.close()
            raise

    def rest(self, texts: Iterable[str]) -> Iterator[str]:
        texts = iter(texts)
        self._add(islice(texts, self.lines))
        if self._digest.hexdigest() != self._expected:
            raise ValueError(
                "The input is not the same as before: of its first "
                f"{self.lines:,} lines, which are translated, some differ. Give the "
                f"same, or leave out --resume to start over. Received: {self.path}"
            )
        return texts

    def write(self, texts: Sequence[str], translations: Sequence[str]) -> None:
        super().write(texts, translations)
        self._add(texts)
        os.fsync(self.file.fileno())
        self._write_note()

    def finish(self) -> None:
        """Gives the file its name."""
        os.fsync(self.file.fileno())
        self.part.replace(self.path)
        self._remove_note()
        flush(self.path.parent)

    def give_up(self, report: bool) -> None:
        """Removes the files unless they have lines to continue from.

        Args:
            report: whether to tell the user.
        """
        if self.lines == 0:
            self.part.unlink(missing_ok=True)
            self._remove_note()
        elif report:
            print(
                f"{self.lines:,} lines are in {self.part}: --resume continues.",
                file=sys.stderr,
            )

    def _read_note(self) -> int:
        """Restores the state from the note, and returns the number of valid bytes."""
        note = read_record(self.note, Note)
        self.lines, self._expected = note.lines, note.read
        now, then = self.settings, note.settings
        different = [
            f"{name} {shown(now.get(name))} instead of {shown(then.get(name))}"
            for name in then | now
            if now.get(name) != then.get(name)
        ]
        if different:
            raise ValueError(
                "The interrupted command had other settings. Give the same, or leave "
                f"out --resume to start over. Received: {', '.join(different)}"
            )
        if os.fstat(self.file.fileno()).st_size < note.bytes:
            raise ValueError(
                f"{self.part} was cut short: leave out --resume to start over. "
                f"Received: fewer than {note.bytes:,} bytes"
            )
        return note.bytes

    def _write_note(self) -> None:
        place, digest = self.file.tell(), self._digest.hexdigest()
        write_record(self.note, Note(self.lines, place, digest, self.settings))

    def _remove_note(self) -> None:
        self.note.unlink(missing_ok=True)
        # A killed process may have left an unfinished one.
        left = f"{TEMPORARY}{glob.escape(self.note.name)}-*"
        for entry in self.path.parent.glob(left):
            entry.unlink(missing_ok=True)

    def _add(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._digest.update(text.encode("utf-8", "surrogatepass") + b"\n")


def shown(value: bool | str | int | float | None) -> str:
    """A setting as it is shown to the user."""
    return "none" if value is None else str(value)


@contextmanager
def output_to(
    path: Path | None, settings: Settings, resume: bool
) -> Iterator[LineWriter]:
    """Context with a writer of translations to a file or to standard output.

    A file appears when the context ends without an error.

    Args:
        path: path of the file. Pipes, devices and open files are written to directly.
        settings, resume: see `PartialFile`.

    Raises:
        OSError: the file cannot be written, or standard output is closed.
    """
    if path is None:
        if sys.__stdout__ is None:
            raise OSError("Standard output is closed: give --output.")
        yield LineWriter(sys.stdout)
    elif is_stream(path):
        with open_stream(path, "w", encoding="utf-8", newline="\n") as stream:
            yield LineWriter(stream)
    else:
        partial = PartialFile(path, settings, resume)
        with partial.file:
            try:
                yield partial
                partial.finish()
            except BaseException as error:
                partial.give_up(report=isinstance(error, KeyboardInterrupt | OSError))
                raise
