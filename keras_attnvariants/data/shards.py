"""Splits in several files, such as `train-00000-of-00010.en` and nine more."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from keras_attnvariants.data.files import read_byte_lines
from keras_attnvariants.data.folders import ParallelFiles
from keras_attnvariants.data.folders import split_files

_NAME = re.compile(r"(?P<split>.+)-(?P<number>\d+)-of-(?P<count>\d+)", re.ASCII)


def join_shards(splits: Mapping[str, ParallelFiles]) -> dict[str, list[ParallelFiles]]:
    """The files of each split, its shards in the order of their numbers."""
    joined: dict[str, list[tuple[int, ParallelFiles]]] = defaultdict(list)
    for name, files in splits.items():
        match = _NAME.fullmatch(name)
        split, number = (match["split"], int(match["number"])) if match else (name, 0)
        joined[split].append((number, files))
    return {
        split: [files for _, files in sorted(shards)]
        for split, shards in joined.items()
    }


def check_shards(folder: Path, languages: tuple[str, str]) -> None:
    """Raises unless all shards of a split are there, in both languages.

    Raises:
        ValueError: one is missing, there are shards of different numbers, or a split
            has both shards and a file of its own.
    """
    found = split_files(folder)
    counts: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for name, by_language in found.items():
        match = _NAME.fullmatch(name)
        present = [language for language in languages if by_language.get(language)]
        if not match or not present:
            continue
        _check_twin(folder, name, {la: by_language[la] for la in present}, languages)
        counts[match["split"]][match["count"]].add(int(match["number"]))
    for split, by_count in counts.items():
        forms = [split] * (split in found)
        forms += [f"{split}-…-of-{count}" for count in sorted(by_count)]
        if len(forms) > 1:
            raise ValueError(
                "A split must be one file or one set of shards in each language. "
                f"Received: {' and '.join(forms)} in {folder}"
            )
        [(count, numbers)] = by_count.items()
        missing = sorted(set(range(int(count))) - numbers)
        if missing or max(numbers) >= int(count):
            name = f"{split}-{(missing or [max(numbers)])[0]:0{len(count)}}-of-{count}"
            raise ValueError(
                f"Shards must be numbered from 0 to {int(count) - 1}: there "
                f"{'is no' if missing else 'must be no'} {name}, in either language. "
                f"Received: {len(numbers)} shards in {folder}"
            )


def _check_twin(
    folder: Path,
    name: str,
    present: Mapping[str, list[Path]],
    languages: tuple[str, str],
) -> None:
    """Raises unless a shard is there in both languages."""
    if len(present) == len(languages):
        return
    [(there, files)] = present.items()
    [missing] = set(languages) - {there}
    lines = sum(1 for _ in read_byte_lines(files[0]))
    raise ValueError(
        "A shard must be there in both languages. "
        f"Received: {lines:,} lines in {files[0]} and no {folder / name}.{missing}"
    )
