"""The splits of a corpus: text files in a folder, or lines of a TSV file."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Iterator
from collections.abc import Sequence
from itertools import islice
from itertools import zip_longest
from pathlib import Path
from typing import Any
from typing import NamedTuple
from typing import TypeAlias

from keras_attnvariants.data.text_files import held_out_split
from keras_attnvariants.data.text_files import read_byte_lines

SPLITS = ("train", "validation", "test")

_VALIDATION_NAMES = ("validation", "valid", "dev", "val")
_LANGUAGE = r"[A-Za-z][\w-]*"
_FILE_NAME = re.compile(rf"(?P<split>.+?)\.(?P<language>{_LANGUAGE})(\.gz)?")
# The header of a TSV file has plain codes only, so that no pair is taken for one.
_HEADER_CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z]+)?")

# A source and a target line; `None` for a line that is not a pair.
BytePair: TypeAlias = tuple[bytes, bytes] | None
# The files of each split by their language.
FilesBySplit: TypeAlias = dict[str, dict[str, list[Path]]]


class Conversion(NamedTuple):
    """Conversion of a corpus in another format to a folder of parallel files.

    Attributes:
        inputs: the files that it is read from.
        write: writes `<split>.<language>` files into a folder.
    """

    inputs: Sequence[Path]
    write: Callable[[Path], None]


class ParallelFiles(NamedTuple):
    """Two UTF-8 text files; line `i` of one translates line `i` of the other."""

    source: Path
    target: Path

    def pairs(self) -> Generator[BytePair, None, None]:
        """Yields the pairs of lines.

        Raises:
            ValueError: If one file has more lines; raised after the last pair.
        """
        counts = [0, 0]
        for first, second in zip_longest(*map(read_byte_lines, self)):
            counts[0] += first is not None
            counts[1] += second is not None
            if first is not None and second is not None:
                yield first, second
        if counts[0] != counts[1]:
            raise ValueError(
                "The two files of a split must have the same number of lines. "
                f"Received: {counts[0]:,} lines in {self.source} and "
                f"{counts[1]:,} lines in {self.target}"
            )


class TableSplit(NamedTuple):
    """A split of a TSV file.

    A header line of the two language codes gives the order of the columns; without
    it the columns are source and target. A hash of the line decides its split, so that
    equal lines are always in the same one.
    """

    path: Path
    languages: tuple[str, str]
    split: str

    def pairs(self) -> Iterator[BytePair]:
        """Yields the pairs, and `None` for lines without exactly two columns.

        Raises:
            ValueError: If the header names other languages.
        """
        header = header_of(self.path, self.languages)
        if header is not None and set(header) != set(self.languages):
            raise ValueError(
                f"The header of {self.path} names the languages {' and '.join(header)}."
                f" Received: {self.languages[0]!r} to {self.languages[1]!r}"
            )
        step = -1 if header == self.languages[::-1] else 1
        for line in islice(read_byte_lines(self.path), int(header is not None), None):
            # Hashing must not fail on broken bytes; equal bytes still agree.
            if held_out_split(line.decode("utf-8", "replace")) == self.split:
                cells = line.split(b"\t")[::step]
                yield (cells[0], cells[1]) if len(cells) == 2 else None


def header_of(path: Path, languages: tuple[str, str]) -> tuple[str, str] | None:
    """The names in the first line of a TSV file, if it has nothing else.

    Args:
        path: the file.
        languages: names that need not be codes of languages, such as `"source"`.
    """
    header = next(read_byte_lines(path), b"").decode("utf-8", "replace").split("\t")
    are_codes = all(map(_HEADER_CODE.fullmatch, header))
    if len(header) == 2 and (are_codes or set(header) == set(languages)):
        return header[0], header[1]
    return None


# Source of the pairs of a split.
Split: TypeAlias = ParallelFiles | TableSplit


def find_splits(
    folder: Path, languages: tuple[str, str]
) -> tuple[dict[str, ParallelFiles], tuple[str, ...]]:
    """Finds the splits of a folder that have both languages.

    Returns:
        The files by split, the usual splits first; and a note on each split that has
        only one of the two languages.

    Raises:
        ValueError: If a language is missing, no split has both, or two files are the
            same split in the same language.
    """
    found = _by_split(folder)
    _check_files(found, folder, languages)
    splits: dict[str, ParallelFiles] = {}
    notes: list[str] = []
    for name in [*SPLITS, *sorted(found.keys() - {*SPLITS})]:
        here = [language for language in languages if language in found[name]]
        if len(here) == 2:
            splits[name] = ParallelFiles(*(found[name][la][0] for la in languages))
        elif here and len(found[name]) > 1:
            notes.append(f"{name}: left out, because there is only {here[0]!r}")
    if not splits:
        raise ValueError(
            f"No split in {folder} has both languages. "
            f"Received: {languages[0]!r} to {languages[1]!r}"
        )
    return splits, tuple(notes)


def has_parallel_files(folder: Path, languages: tuple[str, str]) -> bool:
    """Whether a path is a folder with files of both languages for a split."""
    return folder.is_dir() and any(
        set(languages) <= by_language.keys()
        for by_language in _by_split(folder).values()
    )


def _by_split(folder: Path) -> FilesBySplit:
    found: FilesBySplit = defaultdict(lambda: defaultdict(list))
    for file in sorted(folder.iterdir()):
        match = _FILE_NAME.fullmatch(file.name)
        if match and not file.name.startswith("."):
            split, language = match["split"], match["language"]
            split = "validation" if split in _VALIDATION_NAMES else split
            found[split][language].append(file)
    return found


def _check_files(found: FilesBySplit, folder: Path, languages: tuple[str, str]) -> None:
    """Raises unless both languages are there, with one file each in a split."""
    # The name README.md looks like a split's, too: only pairs count.
    present = sorted({lang for by in found.values() if len(by) > 1 for lang in by})
    for language in languages:
        for split, by_language in found.items():
            if len(files := by_language.get(language, [])) > 1:
                raise ValueError(
                    f"Two files for split {split!r} in language {language!r}: keep one."
                    f" Received: {' and '.join(map(str, files))}"
                )
        if language not in present:
            raise ValueError(
                f"No parallel files in language {language!r} in {folder}; "
                f"languages there: {', '.join(present) or 'none'}. "
                f"Received: {languages[0]!r} to {languages[1]!r}"
            )


def check_languages(source_language: Any, target_language: Any) -> tuple[str, str]:
    """The codes of two languages.

    Raises:
        ValueError: If one is not a code, or both are the same.
    """
    given = {"source": source_language, "target": target_language}
    for name, value in given.items():
        if not isinstance(value, str) or not re.fullmatch(_LANGUAGE, value):
            raise ValueError(
                f"`{name}_language` (--{name}) must be a language code such as 'de'. "
                f"Received: {value!r}"
            )
    if source_language == target_language:
        raise ValueError(
            "`source_language` and `target_language` must differ. "
            f"Received: {source_language!r} twice"
        )
    return source_language, target_language
