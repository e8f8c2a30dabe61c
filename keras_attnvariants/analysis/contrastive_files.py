"""Contrastive pairs from files: folders of text, and the JSON of LingEval97."""

import os
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from keras_attnvariants.data.text_files import open_bytes
from keras_attnvariants.data.text_files import read_text_lines


class ContrastivePair(NamedTuple):
    """A source, its translation, and a translation with one mistake.

    Attributes:
        source, reference, contrastive: the texts.
        category: kind of mistake.
        distance: distance between the words that must agree; `None` if not annotated.
    """

    source: str
    reference: str
    contrastive: str
    category: str
    distance: int | None = None


@dataclass
class Mistake:
    """A wrong translation in the JSON of LingEval97."""

    type: str
    contrastive: str
    distance: int | None = None


@dataclass
class Entry:
    """A sentence in the JSON of LingEval97; other fields are ignored."""

    source: str
    reference: str
    errors: list[Mistake]


def read_contrastive(path: os.PathLike[str] | str) -> Iterator[ContrastivePair]:
    """Contrastive pairs; a folder is read lazily.

    Args:
        path: a folder with files `<category>.src.<language>`,
            `<category>.correct.<language>` and `<category>.incorrect.<language>`, one
            sentence a line, as DistilLingEval has them; or a JSON file like that of
            LingEval97, a list of objects with `source`, `reference` and `errors`,
            which are objects with `type`, `contrastive` and perhaps `distance`. All
            may end in `.gz`.

    Raises:
        FileNotFoundError: there is no such file or folder, or a part of a category is
            missing.
        ValueError: the files of a category have different numbers of lines, or the
            JSON file is not as described.
    """
    path = Path(path)
    return read_folder(path) if path.is_dir() else read_lingeval(path)


def read_folder(folder: Path) -> Iterator[ContrastivePair]:
    """The pairs of a folder, category by category."""
    sources = sorted(folder.glob("*.src.*"))
    if not sources:
        raise FileNotFoundError(
            "A folder of contrastive pairs must have files <category>.src.<language>. "
            f"Received: {folder}"
        )
    for source in sources:
        category = source.name.split(".src.")[0]
        parts = [source, *(part(folder, category, x) for x in ("correct", "incorrect"))]
        for text, correct, incorrect in equal_lines(parts):
            yield ContrastivePair(text, correct, incorrect, category)


def part(folder: Path, category: str, name: str) -> Path:
    """The only file with this part of a category."""
    found = sorted(folder.glob(f"{category}.{name}.*"))
    if len(found) != 1:
        raise FileNotFoundError(
            f"A category must have one file {category}.{name}.<language>. "
            f"Received: {len(found)} of them in {folder}"
        )
    return found[0]


def equal_lines(paths: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """The lines of files side by side.

    Raises:
        ValueError: the files have different numbers of lines.
    """
    for number, texts in enumerate(zip_longest(*map(read_text_lines, paths)), start=1):
        ended = [p.name for p, text in zip(paths, texts, strict=True) if text is None]
        if ended:
            raise ValueError(
                "The files must have the same number of lines. Received: "
                f"{', '.join(ended)} ended before line {number}"
            )
        yield texts


def read_lingeval(path: Path) -> Iterator[ContrastivePair]:
    """The pairs of a JSON file, one for each error.

    Raises:
        ValueError: it is not as `read_contrastive` describes it, or it is cut short.
    """
    # Imported here: few commands need it.
    from pydantic import TypeAdapter
    from pydantic import ValidationError

    with open_bytes(path) as file:
        text = file.read().decode("utf-8-sig", "replace")
    try:
        entries = TypeAdapter(list[Entry]).validate_json(text)
    except ValidationError as error:
        [first, *_] = error.errors()
        where = " > ".join(map(str, first["loc"])) or "all"
        raise ValueError(
            "Contrastive pairs must be a folder, or a JSON list of objects with "
            "`source`, `reference` and `errors`, each with `type` and `contrastive`. "
            f"{first['msg']}. Received: {where} of {path}"
        ) from error
    for entry in entries:
        texts = entry.source, entry.reference
        for wrong in entry.errors:
            yield ContrastivePair(*texts, wrong.contrastive, wrong.type, wrong.distance)
