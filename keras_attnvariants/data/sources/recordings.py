"""Corpora of recordings, in the formats in which they are distributed.

| form | is read from |
|---|---|
| LibriSpeech | folders such as `train-clean-100/84/121` with recordings and a file
    `84-121.trans.txt` |
| Common Voice | `train.tsv`, `dev.tsv` and `test.tsv` with columns `path` and
    `sentence`, beside the folder `clips` |
| a table | `manifest.tsv` with a column `file` or `path`, one `text`, `transcript` or
    `sentence` and perhaps one `split`, beside the recordings or tar archives of them |
"""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO
from typing import cast

from keras_attnvariants.data.sources.archives import TARS
from keras_attnvariants.data.sources.archives import archive_errors
from keras_attnvariants.data.sources.archives import check_size
from keras_attnvariants.data.sources.download import FetchError
from keras_attnvariants.data.splits import Conversion
from keras_attnvariants.data.text_files import held_out_split
from keras_attnvariants.data.text_files import read_text_lines
from keras_attnvariants.data.text_files import write_splits

# Split, path and text of each recording.
Recordings = Iterable[tuple[str, Path, str]]

_MANIFEST = "manifest.tsv"
_PATHS, _TEXTS = ("file", "path"), ("text", "transcript", "sentence")
_UNPACKED = "recordings"


def librispeech(files: Iterable[Path]) -> Recordings:
    """The recordings of LibriSpeech, by the files of their texts.

    All training sets are one split; `dev-clean` is "validation", `test-clean` is
    "test".
    """
    names = {"dev-clean": "validation", "test-clean": "test"}
    for file in files:
        part = file.absolute().parts[-4]
        split = "train" if part.startswith("train-") else names.get(part, part)
        for line in read_text_lines(file):
            name, _, text = line.partition(" ")
            yield split, file.absolute().with_name(f"{name}.flac"), text


def common_voice(files: Iterable[Path]) -> Recordings:
    """The recordings of Common Voice, by the tables of the splits."""
    for file in files:
        for path, text, _ in _rows(file):
            yield file.stem, file.absolute().parent / "clips" / path, text


def table(files: Iterable[Path]) -> Recordings:
    """The recordings of a table, the first of the files, and of archives beside it.

    Without a column `split`, 3 % each are validation and test, by the hash of their
    names.
    """
    manifest, *archives = files
    for path, text, split in _rows(manifest):
        place = manifest.absolute().parent / path
        # Otherwise it is in an archive, which `write` unpacks.
        if archives and not place.exists():
            place = Path(_UNPACKED) / path
        yield split or held_out_split(path), place, text


def _rows(file: Path) -> Iterator[tuple[str, str, str]]:
    """Path, text and split of each row of a table.

    Raises:
        ValueError: it has no column of paths or of texts, or an invalid split name.
    """
    lines = (line.split("\t") for line in read_text_lines(file))
    header = next(lines, [""])
    found = [[n for n in names if n in header] for names in (_PATHS, _TEXTS)]
    if not all(found):
        raise ValueError(
            f"{file.name} must have a column {' or '.join(_PATHS)}, and one "
            f"{', '.join(_TEXTS[:-1])} or {_TEXTS[-1]}. "
            f"Received: {', '.join(header) or 'an empty file'} in {file}"
        )
    for cells in lines:
        if cells == [""]:
            continue
        row = dict(zip(header, cells, strict=False))
        path, text = (row.get(names[0], "") for names in found)
        split = row.get("split", "")
        # It becomes part of the name of a file.
        if not re.fullmatch(r"[\w-]*", split):
            raise ValueError(
                "A split must have a name of letters, digits, - and _. "
                f"Received: {split!r} in {file}"
            )
        yield path, text, split


def conversion(folder: Path) -> Conversion | None:
    """The conversion of a folder in one of these formats; `None` for other folders."""
    files = sorted(folder.glob("*/*/*/*.trans.txt"))
    if files:
        return Conversion(files, partial(write, librispeech, files))
    tables = [folder / f"{split}.tsv" for split in ("train", "dev", "test")]
    files = [file for file in tables if file.is_file()]
    if files and (folder / "clips").is_dir():
        return Conversion(files, partial(write, common_voice, files))
    if (folder / _MANIFEST).is_file():
        packed = (f for f in folder.glob("[!.]*") if f.name.endswith(TARS))
        files = [folder / _MANIFEST, *sorted(packed)]
        return Conversion(files, partial(write, table, files))
    return None


def write(
    read: Callable[[Iterable[Path]], Recordings], files: Sequence[Path], into: Path
) -> None:
    """Writes recordings and texts as `<split>.audio` and `<split>.text`.

    Paths are absolute, except for recordings from archives, which are unpacked into the
    folder.

    Raises:
        FetchError: an archive is broken, or packed too tightly.
        ValueError: a table lacks a column, or has an invalid split name.
    """
    for file in files:
        if file.name.endswith(TARS):
            _unpack(file, into / _UNPACKED)
    lines = (
        (split, side, line)
        for split, place, text in read(files)
        for side, line in (("audio", str(place)), ("text", text))
    )
    write_splits(into, lines)


def _unpack(archive: Path, into: Path) -> None:
    """Unpacks the files of an archive into a folder, and nothing outside of it."""
    size = 0
    with archive_errors(archive), tarfile.open(archive) as tar:
        for member in tar:
            place = (into / member.name).resolve()
            size += member.size
            check_size(archive, "The archive", size)
            if member.isdir():
                continue
            if not member.isfile() or not place.is_relative_to(into.resolve()):
                raise FetchError(
                    f"{archive} must hold only files, no links, and nothing outside "
                    f"its folder. Received: {member.name}"
                )
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as file:
                shutil.copyfileobj(cast(IO[bytes], tar.extractfile(member)), file)
