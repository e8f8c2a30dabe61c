"""Contrastive pairs from files: folders of text, and the JSON of LingEval97."""

import json
import os
from collections.abc import Iterator
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any
from typing import NamedTuple

from keras_attnvariants.data.text_files import open_bytes
from keras_attnvariants.data.text_files import read_text_lines


class ContrastivePair(NamedTuple):
    """A source, its translation, and one that is wrong in one respect.

    Attributes:
        source, reference, contrastive: the texts.
        category: kind of mistake.
        distance: between the words that have to agree; `None` if it is not annotated.
    """

    source: str
    reference: str
    contrastive: str
    category: str
    distance: int | None = None


# Types of the values of a pair.
KINDS = (str, str, str, str, int | None)


def read_contrastive(path: os.PathLike[str] | str) -> Iterator[ContrastivePair]:
    """Contrastive pairs; those of a folder are read as they are needed.

    Args:
        path: A folder with files `<category>.src.<language>`,
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
    if path.is_dir():
        yield from read_folder(path)
    else:
        yield from read_lingeval(path)


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
    """The one file of a category that has this part of it."""
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
                "The files must have equal numbers of lines. Received: "
                f"{', '.join(ended)} ended before line {number}"
            )
        yield texts


def read_lingeval(path: Path) -> Iterator[ContrastivePair]:
    """The pairs of a JSON file, one for each error."""
    for number, entry in enumerate(json_entries(path), start=1):
        try:
            texts = entry["source"], entry["reference"]
            for error in entry["errors"]:
                wrong = error["contrastive"], error["type"], error.get("distance")
                pair = ContrastivePair(*texts, *wrong)
                if not all(map(isinstance, pair, KINDS)):
                    raise TypeError(f"{wrong} has another type")
                yield pair
        except (KeyError, TypeError, AttributeError) as problem:
            raise ValueError(
                "An entry must have `source`, `reference` and `errors`, each with "
                f"`type` and `contrastive`: {problem}. Received: entry {number} of "
                f"{path}"
            ) from problem


def json_entries(path: Path) -> list[Any]:
    """The elements of the list in a JSON file.

    Raises:
        ValueError: it is not a list, or it is cut short.
    """
    with open_bytes(path) as file:
        text = file.read().decode("utf-8-sig", "replace")
    try:
        entries = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(
            f"The JSON is damaged or cut short ({error}). Received: {path}"
        ) from error
    if not isinstance(entries, list):
        raise ValueError(
            f"Contrastive pairs must be a folder, or a list in JSON. Received: {path}"
        )
    return entries
