"""Parallel corpora: folders of text files, TSV files and registered names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from keras_attnvariants.data import sources
from keras_attnvariants.data import tasks
from keras_attnvariants.data.alignments import cached_alignments
from keras_attnvariants.data.audio import modification_digest
from keras_attnvariants.data.cleaning import SplitReport
from keras_attnvariants.data.cleaning import clean_split
from keras_attnvariants.data.sources import hugging_face
from keras_attnvariants.data.splits import SPLITS
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.splits import Split
from keras_attnvariants.data.splits import TableSplit
from keras_attnvariants.data.splits import find_splits
from keras_attnvariants.data.splits import has_parallel_files
from keras_attnvariants.data.tasks import Task
from keras_attnvariants.data.text_files import check_text_file
from keras_attnvariants.data.text_files import fingerprint
from keras_attnvariants.utils.caches import cached_folder
from keras_attnvariants.utils.caches import default_cache
from keras_attnvariants.utils.checks import check_share
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import FolderWriter
from keras_attnvariants.utils.lines import split_lines

if TYPE_CHECKING:
    from keras_attnvariants.data.mixing import Mixture

# Part of the key of the cache: raise it when cleaning changes.
_CLEANING_VERSION = 2
_REPORT = "report.json"
# Share of lines that may be in another encoding.
MAX_INVALID = 0.01
# Found in paths, but not in names of registered corpora.
_PATH = re.compile(rf"/|{re.escape(os.sep)}|\.(tsv|gz)$")


@dataclass(frozen=True)
class Corpus:
    """A cleaned parallel corpus on disk.

    Attributes:
        name: Name of the corpus.
        source_language: Code of the language to translate from.
        target_language: Code of the language to translate into.
        folder: Cache folder with the cleaned files.
        splits: `ParallelFiles` by name of the split: "train", "validation", "test"
            and any others.
        reports: A `SplitReport` by name of the split.
        notes: Remarks for the user, one line each.
        mixture: Shares of several corpora in training; `None` for a single one. See
            `mix_corpora`.
        tags: Words that the sources of some corpora begin with.
        alignments: File with the links between the words of each pair of the training
            split, if there are any.
        revision: Name and commit of a data set of the hub, separated by spaces for
            several; `""` for none.
        inputs: Files that it was read from.
        task: Name of its task, see `keras_attnvariants.data.tasks`.
    """

    name: str
    source_language: str
    target_language: str
    folder: Path
    splits: dict[str, ParallelFiles]
    reports: dict[str, SplitReport]
    notes: tuple[str, ...] = ()
    mixture: Mixture | None = None
    tags: tuple[str, ...] = ()
    alignments: Path | None = None
    revision: str = ""
    inputs: tuple[Path, ...] = ()
    task: str = tasks.DEFAULT

    @property
    def report(self) -> str:
        """Counts of pairs read, written and bad, one line per split."""
        lines = [str(report) for report in self.reports.values()]
        return "\n".join([*lines, *self.notes])

    def files(self, split: str) -> ParallelFiles:
        """Returns the files of a split.

        Raises:
            ValueError: If there is no such split.
        """
        if split not in self.splits:
            raise ValueError(
                f"Corpus {self.name!r} has no such split, only {list(self.splits)}. "
                f"Received: {split!r}"
            )
        return self.splits[split]

    def read_lines(self, split: str) -> tuple[list[str], list[str]]:
        """Returns the source and the target sentences of a split."""
        source, target = (
            split_lines(file.read_text(encoding="utf-8")) for file in self.files(split)
        )
        return source, target


def load_corpus(
    spec: os.PathLike[str] | str,
    source_language: str | None = None,
    target_language: str | None = None,
    cache_dir: os.PathLike[str] | str | None = None,
    max_characters: int | None = None,
    max_invalid: float = MAX_INVALID,
    alignments: os.PathLike[str] | str | None = None,
    unique: bool = False,
    task: str = tasks.DEFAULT,
) -> Corpus:
    """Finds, checks and cleans a parallel corpus.

    The cleaned splits are plain UTF-8 files in the cache, written once, so that later
    steps can stream them. Pairs with invalid UTF-8, a NUL, an empty or an over-long
    side are counted in `corpus.report`; they are left out of splits whose names begin
    with "train" and kept, as far as they are text, in all others, so that line `i`
    stays line `i` of the file. Byte order marks and CR at line ends are dropped.

    Args:
        spec: One of
            - a folder with files `<split>.<language>`, each plain or `.gz`:
              `train`, `validation` (or `valid`, `dev`, `val`), `test`, and any
              others, such as `test2016`, under their own names;
            - a TSV file (plain or `.gz`) with two columns, source and target, or
              in the order that a header line with the two language codes gives.
              3 % of the lines each become validation and test, chosen by hash;
            - a data set of the Hugging Face hub, `hf:NAME`, `hf:NAME:CONFIG` or one of
              these with `@REVISION`, which has the languages in a column
              `translation` or as columns. Its splits keep their names;
            - the name of a registered corpus, such as `"bible-de-en"`, which is
              fetched once. `corpus_names()` lists them.

            If the task is `"speech"`, sources are paths of recordings, absolute or
            relative to the folder of the file. Unreadable ones are bad. In the cleaned
            files, paths are absolute, or empty for bad ones.
        source_language: Language code as in the file names; by default that of the
            task.
        target_language: The same for the other side.
        cache_dir: Where cleaned and fetched files go; default
            `~/.cache/keras_attnvariants`, or the folder that the environment
            variable `KAV_CACHE` names.
        max_characters: Longest sentence, by default that of the task; longer ones are
            counted as over-long.
        max_invalid: Largest share of the lines of a file that may be invalid UTF-8,
            from 0 to 1. A file with more is probably in another encoding.
        alignments: Links between the words of the training split, plain or `.gz`: one
            line for each pair of its files, such as `0-0 1-2` for the first source word
            and the first target word, the second and the third. Words are separated by
            white space. See docs/training.md.
        unique: Whether to leave out repeated pairs in splits whose names begin with
            "train". They are counted as repeated.
        task: Name of the task. It decides which other formats of a corpus are read, see
            `keras_attnvariants.data.tasks`.

    Returns:
        The `Corpus`.

    Raises:
        FileNotFoundError: If the path does not exist.
        ValueError: If a name is unknown, the package for the hub is not installed, a
            language is missing, the two files of a split differ in length, a file is
            empty, broken or not UTF-8 text, or the alignments do not fit the training
            split.
        FetchError: If a registered corpus, or one of the hub, cannot be fetched.

    Example:

    ```python
    corpus = kav.data.load_corpus("multi30k", "en", "de")
    print(corpus.report)
    sources, references = corpus.read_lines("test2016")
    ```
    """
    kind = tasks.get(task)
    languages = kind.sides(source_language, target_language)
    max_characters = max_characters or kind.max_characters
    share = check_share("max_invalid", max_invalid)
    cache = Path(cache_dir) if cache_dir else default_cache()
    found = _find(spec, languages, cache, kind)
    if alignments is not None:
        found.check_alignable(alignments, unique)
    settings = [_CLEANING_VERSION, languages, max_characters, unique, share]
    if found.recordings is not None:
        pairs = (pair for split in found.splits.values() for pair in split.pairs())
        settings.append(
            modification_digest(found.recordings, (pair[0] for pair in pairs if pair))
        )
    digest = fingerprint(found.inputs, *settings)
    folder = cache / "corpora" / f"{found.name}-{'-'.join(languages)}-{digest}"
    cached_folder(folder, lambda into: found.clean(into, max_characters, share, unique))
    reports = [SplitReport(**report) for report in read_json(folder / _REPORT)]
    kept = None
    if alignments is not None:
        files = ParallelFiles(*found.splits["train"][:2])
        kept = cached_alignments(folder, files, Path(alignments), max_characters)
    return Corpus(
        found.name,
        *languages,
        folder=folder,
        splits={r.split: _files(folder, r.split, languages) for r in reports},
        reports={r.split: r for r in reports},
        notes=found.notes,
        alignments=kept,
        revision=found.revision,
        inputs=tuple(found.inputs),
        task=task,
    )


class _Found(NamedTuple):
    """A corpus before it is cleaned: its files, and its pairs by split."""

    name: str
    languages: tuple[str, str]
    inputs: Sequence[Path]
    splits: Mapping[str, Split]
    notes: tuple[str, ...] = ()
    revision: str = ""

    @property
    def recordings(self) -> Path | None:
        """The folder that recordings are relative to, if sources are recordings."""
        return self.inputs[0].parent if self.languages[0] == tasks.AUDIO else None

    def check_alignable(self, alignments: Any, unique: bool) -> None:
        """Raises unless it can have alignments; see `load_corpus`."""
        is_parallel = isinstance(self.splits.get("train"), ParallelFiles)
        if unique or not is_parallel or self.recordings is not None:
            raise ValueError(
                "`alignments` have a line for each pair: give a corpus whose split "
                "'train' is two text files, one for each language, and do not use "
                f"`unique`. Received: {alignments} with {self.name!r}"
            )

    def clean(
        self, into: FolderWriter, max_characters: int, max_invalid: float, unique: bool
    ) -> None:
        """Writes the cleaned splits and their reports; see `load_corpus`."""
        for file in self.inputs:
            check_text_file(file, max_invalid)
        reports = []
        for split, read in self.splits.items():
            files = _files(into.path, split, self.languages)
            trains = split.startswith("train")
            # Tables are split by a hash, so nothing refers to their lines by number.
            keeps = not trains and isinstance(read, ParallelFiles)
            options = (max_characters, keeps, unique and trains, self.recordings)
            report = clean_split(split, read.pairs(), files, *options)
            if report.written == 0:
                raise ValueError(
                    f"Split {split!r} holds no usable pair ({report}). "
                    f"Received: {', '.join(map(str, self.inputs))}"
                )
            reports.append(asdict(report))
        into.write_json(_REPORT, reports)


def _find(
    spec: os.PathLike[str] | str,
    languages: tuple[str, str],
    cache: Path,
    task: Task,
) -> _Found:
    """Finds a corpus; see `load_corpus` for its arguments and errors."""
    path = Path(spec)
    # Other formats may lie beside parallel files.
    is_other = path.exists() and not has_parallel_files(path, languages)
    if is_other and (conversion := task.conversion(path)):
        name = path.resolve().name.split(".")[0]
        # The location matters: lists of recordings have absolute paths.
        key = fingerprint(conversion.inputs, task.name, str(path.resolve()))
        path = cached_folder(
            cache / "sources" / key / name, lambda into: conversion.write(into.path)
        )
    if path.is_file():
        table = {split: TableSplit(path, languages, split) for split in SPLITS}
        return _Found(path.name.split(".")[0], languages, [path], table)
    revision = ""
    if path.is_dir():
        name, folder = path.resolve().name, path
    elif isinstance(spec, str) and spec.startswith(hugging_face.PREFIX):
        folder, revision = hugging_face.fetch(spec, languages, cache)
        name = revision.partition("@")[0].rpartition("/")[2]
    elif isinstance(spec, str) and not _PATH.search(spec):
        name, folder = spec, sources.fetch(spec, languages, cache)
    else:
        raise FileNotFoundError(
            f"There is no such folder or TSV file. Received: {spec}"
        )
    splits, notes = find_splits(folder, languages)
    inputs = [file for files in splits.values() for file in files]
    if revision:
        notes = (*notes, f"Revision: {revision}")
    return _Found(name, languages, inputs, splits, notes, revision)


def _files(folder: Path, split: str, languages: tuple[str, str]) -> ParallelFiles:
    return ParallelFiles(*(folder / f"{split}.{language}" for language in languages))
