"""Finds the splits and languages in folders of parallel text files."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

SPLITS = ("train", "validation", "test")

_VALIDATION_NAMES = ("validation", "valid", "dev", "val")
_FILE_NAME = re.compile(r"(?P<split>.+?)\.(?P<language>[A-Za-z][\w-]*)(\.gz)?")


class ParallelFiles(NamedTuple):
    """Two UTF-8 text files; line `i` of one translates line `i` of the other."""

    source: Path
    target: Path


def split_files(folder: Path) -> dict[str, dict[str, list[Path]]]:
    """Finds the files of a folder by split and language; usually one of each."""
    found: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for file in sorted(folder.iterdir()):
        match = _FILE_NAME.fullmatch(file.name)
        if match and file.is_file():
            split, language = match["split"], match["language"]
            split = "validation" if split in _VALIDATION_NAMES else split
            found[split][language].append(file)
    return found


def find_splits(
    folder: Path, languages: tuple[str, str]
) -> tuple[dict[str, ParallelFiles], tuple[str, ...]]:
    """Finds the splits of a folder that have both languages.

    Returns:
        The files by split, and a note on each split that has only one of the
        two languages.

    Raises:
        ValueError: If a language is missing, no split has both, or two files are the
            same split in the same language.
    """
    found = split_files(folder)
    for split, by in found.items():
        for language in languages:
            if len(by.get(language, ())) > 1:
                raise ValueError(
                    f"Two files for split {split!r} in language {language!r}: keep "
                    f"one. Received: {' and '.join(map(str, by[language]))}"
                )
    # The name README.md has the form of a split's, too: only pairs count.
    present = sorted({lang for by in found.values() if len(by) > 1 for lang in by})
    for language in languages:
        if language not in present:
            raise ValueError(
                f"No parallel files in language {language!r} in {folder}; "
                f"languages there: {', '.join(present) or 'none'}. "
                f"Received: {languages[0]!r} to {languages[1]!r}"
            )
    splits: dict[str, ParallelFiles] = {}
    notes: list[str] = []
    for split in sorted(found, key=_split_order):
        here = [language for language in languages if language in found[split]]
        if len(here) == 2:
            files = (found[split][language][0] for language in languages)
            splits[split] = ParallelFiles(*files)
        elif here and len(found[split]) > 1:
            notes.append(f"{split}: left out, because there is only {here[0]!r}")
    if not splits:
        raise ValueError(
            f"No split in {folder} has both languages. "
            f"Received: {languages[0]!r} to {languages[1]!r}"
        )
    return splits, tuple(notes)


def _split_order(split: str) -> tuple[int, str]:
    return SPLITS.index(split) if split in SPLITS else len(SPLITS), split
