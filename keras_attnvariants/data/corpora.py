"""Parallel corpora: folders of text files, TSV files and registered names."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from keras_attnvariants.data import sources
from keras_attnvariants.data.alignments import cached_alignments
from keras_attnvariants.data.cleaning import Cleaner
from keras_attnvariants.data.cleaning import CleaningJob
from keras_attnvariants.data.cleaning import SeenPairs
from keras_attnvariants.data.cleaning import SplitReport
from keras_attnvariants.data.cleaning import clean_splits
from keras_attnvariants.data.cleaning import write_clean
from keras_attnvariants.data.mixture import Mixture
from keras_attnvariants.data.splits import SPLITS
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.splits import check_languages
from keras_attnvariants.data.splits import find_splits
from keras_attnvariants.data.splits import read_tsv
from keras_attnvariants.data.text_files import check_text_file
from keras_attnvariants.data.text_files import fingerprint
from keras_attnvariants.utils.caches import cached_folder
from keras_attnvariants.utils.caches import default_cache
from keras_attnvariants.utils.caches import remembered
from keras_attnvariants.utils.checks import check_share
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import FolderWriter
from keras_attnvariants.utils.lines import split_lines

# Part of the key of the cache: raise it when cleaning changes.
_CLEANING_VERSION = 1
_REPORT = "report.json"


class _Limits(NamedTuple):
    """Limits for lines and pairs, see `load_corpus`."""

    max_characters: int
    max_invalid: float
    unique: bool


@dataclass(frozen=True)
class Corpus:
    """A cleaned parallel corpus on disk.

    Attributes:
        name: Name of the corpus.
        source_language: Code of the language to translate from.
        target_language: Code of the language to translate into.
        folder: Cache folder with the cleaned files.
        splits: `ParallelFiles` by name of the split: "train", "validation", "test"
            and whatever else there is.
        reports: A `SplitReport` by name of the split.
        notes: Remarks for the user, one line each.
        mixture: How often the pairs of each of several corpora are seen; `None` for a
            single one. See `mix_corpora`.
        tags: What the sources of some corpora begin with.
        alignments: File with the links between the words of each pair of the training
            split, if there are any.
    """

    name: str
    source_language: str
    target_language: str
    folder: Path
    splits: dict[str, ParallelFiles]
    reports: dict[str, SplitReport]
    notes: tuple[str, ...] = field(default=())
    mixture: Mixture | None = None
    tags: tuple[str, ...] = ()
    alignments: Path | None = None

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
    source_language: str,
    target_language: str,
    cache_dir: os.PathLike[str] | str | None = None,
    max_characters: int = 2000,
    max_invalid: float = 0.01,
    alignments: os.PathLike[str] | str | None = None,
    unique: bool = False,
    cleaner: Cleaner = clean_splits,
) -> Corpus:
    """Finds, checks and cleans a parallel corpus.

    The cleaned splits are plain UTF-8 files in the cache, written once, so that
    later steps stream them. Pairs with invalid UTF-8, a NUL, an empty or an
    over-long side are counted in `corpus.report`; they are left out of splits
    whose names begin with "train" and kept, as far as they are text, in all
    others, so that line `i` stays line `i` of the file. Byte order marks and CR at
    line ends are dropped.

    Args:
        spec: One of
            - a folder with files `<split>.<language>`, each plain or `.gz`:
              `train`, `validation` (or `valid`, `dev`, `val`), `test`, and any
              others, such as `test2016`, under their own names. A split may be
              in shards, `train-00000-of-00010.en` to `train-00009-of-00010.en`;
            - a TSV file (plain or `.gz`) with two columns, source and target, or
              in the order that a header line with the two language codes gives.
              3 % of the lines each become validation and test, chosen by hash;
            - the name of a registered corpus, such as `"bible-de-en"`, which is
              fetched once. `corpus_names()` lists them.
        source_language: Language code as in the file names.
        target_language: Language code as in the file names.
        cache_dir: Where cleaned and fetched files go; default
            `~/.cache/keras_attnvariants`, or the folder that the environment
            variable `KAV_CACHE` names.
        max_characters: Longest sentence; longer ones are counted as over-long.
        max_invalid: Largest share of the lines of a file that may be invalid UTF-8,
            from 0 to 1. A file with more is probably in another encoding.
        alignments: Links between the words of the training split, plain or `.gz`: one
            line for each pair of its files, such as `0-0 1-2` for the first source word
            and the first target word, the second and the third. Words are separated by
            white space. See docs/training.md.
        unique: Whether to leave pairs out that came before in the split, if its name
            begins with "train". They are counted as repeated.
        cleaner: What cleans the files of a folder; `kav.beam.prepare` has one that
            does so in many processes and writes the same.

    Returns:
        The `Corpus`.

    Raises:
        FileNotFoundError: If the path does not exist.
        ValueError: If the name is unknown, a language or a shard is missing, the two
            files of a split differ in length, a file is empty, broken or not UTF-8
            text, or the alignments are not of the training split.
        FetchError: If a registered corpus cannot be fetched.

    Example:

    ```python
    corpus = kav.data.load_corpus("multi30k", "en", "de")
    print(corpus.report)
    sources, references = corpus.read_lines("test2016")
    ```
    """
    check_languages(source_language, target_language)
    cache = Path(cache_dir) if cache_dir else default_cache()
    languages = (source_language, target_language)
    share = check_share("max_invalid", max_invalid)
    limits = _Limits(max_characters, share, unique)
    path = Path(spec)
    if path.is_dir():
        name, folder = path.resolve().name, path
    elif path.is_file():
        if alignments is not None:
            raise ValueError(
                "Alignments need a corpus of two files, one for each language. "
                f"Received: {alignments} with {path}"
            )
        return _load_tsv(path, languages, cache, limits)
    elif isinstance(spec, str) and not _looks_like_path(spec):
        name, folder = spec, sources.fetch(spec, languages, cache)
    else:
        raise FileNotFoundError(
            f"There is no such folder or TSV file. Received: {spec}"
        )
    links = None if alignments is None else Path(alignments)
    if links is not None and unique:
        raise ValueError(
            "`alignments` have a line for each pair: leave none out with `unique`. "
            f"Received: {alignments}"
        )
    return _load_folder(name, folder, languages, cache, limits, cleaner, links)


def _looks_like_path(spec: str) -> bool:
    return "/" in spec or os.sep in spec or spec.endswith((".tsv", ".gz"))


def _load_folder(
    name: str,
    folder: Path,
    languages: tuple[str, str],
    cache: Path,
    limits: _Limits,
    cleaner: Cleaner,
    alignments: Path | None,
) -> Corpus:
    splits, notes = find_splits(folder, languages)

    def write(into: Path) -> list[SplitReport]:
        return cleaner(
            [
                CleaningJob(
                    split,
                    shards,
                    _split_files(into, split, languages),
                    limits.max_characters,
                    keep_bad=not _is_training(split),
                    unique=limits.unique and _is_training(split),
                )
                for split, shards in splits.items()
            ]
        )

    inputs = [file for shards in splits.values() for files in shards for file in files]
    corpus = _cached(name, languages, cache, inputs, limits, notes, write)
    if alignments is None:
        return corpus
    corpus.files("train")
    kept = cached_alignments(
        corpus.folder, splits["train"], alignments, limits.max_characters
    )
    return replace(corpus, alignments=kept)


def _is_training(split: str) -> bool:
    return split.startswith("train")


def _load_tsv(
    path: Path, languages: tuple[str, str], cache: Path, limits: _Limits
) -> Corpus:
    def is_repeated(split: str) -> SeenPairs | None:
        return SeenPairs() if limits.unique and _is_training(split) else None

    def write(into: Path) -> list[SplitReport]:
        return [
            write_clean(
                read_tsv(path, languages, split),
                _split_files(into, split, languages),
                split,
                limits.max_characters,
                keep_bad=False,
                is_repeated=is_repeated(split),
            )
            for split in SPLITS
        ]

    name = path.name.split(".")[0]
    return _cached(name, languages, cache, [path], limits, (), write)


def _split_files(folder: Path, split: str, languages: tuple[str, str]) -> ParallelFiles:
    return ParallelFiles(*(folder / f"{split}.{language}" for language in languages))


def _cached(
    name: str,
    languages: tuple[str, str],
    cache: Path,
    inputs: list[Path],
    limits: _Limits,
    notes: tuple[str, ...],
    write: Callable[[Path], list[SplitReport]],
) -> Corpus:
    """Returns the cleaned corpus of these inputs, writing it if need be."""
    share = limits.max_invalid
    for file in inputs:
        remembered(
            file, f"UTF-8 but for {share}", lambda file: check_text_file(file, share)
        )
    settings = [_CLEANING_VERSION, languages, limits.max_characters]
    # Without the option, the name of the folder is that of a corpus without a choice.
    settings += ["unique"] if limits.unique else []
    digest = fingerprint(inputs, *settings)
    folder = cache / "corpora" / f"{name}-{'-'.join(languages)}-{digest}"

    def fill(writer: FolderWriter) -> None:
        reports = write(writer.path)
        _check_not_empty(reports, inputs)
        writer.write_json(_REPORT, [asdict(report) for report in reports])

    cached_folder(folder, fill)
    reports = [SplitReport(**report) for report in read_json(folder / _REPORT)]
    return Corpus(
        name=name,
        source_language=languages[0],
        target_language=languages[1],
        folder=folder,
        splits={r.split: _split_files(folder, r.split, languages) for r in reports},
        reports={r.split: r for r in reports},
        notes=tuple(notes),
    )


def _check_not_empty(reports: list[SplitReport], inputs: list[Path]) -> None:
    for report in reports:
        if report.written == 0:
            raise ValueError(
                f"Split {report.split!r} holds no usable pair ({report}). "
                f"Received: {', '.join(str(file) for file in inputs)}"
            )
