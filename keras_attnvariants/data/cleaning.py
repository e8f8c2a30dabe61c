"""Reads parallel lines of any quality, and reports what was wrong with them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple
from typing import TypeAlias

from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.text_files import read_byte_lines
from keras_attnvariants.utils.lines import on_one_line

# In the order in which a line is checked; a pair is counted under its first problem.
REPEATED = "repeated"
PROBLEMS = ("not two columns", "invalid UTF-8", "NUL", "empty", "over-long", REPEATED)

# Whether a good pair of texts came before; called for each of them in order.
IsRepeated: TypeAlias = Callable[[str, str], bool]


@dataclass
class SplitReport:
    """Counts of the pairs read from and written to one split.

    Attributes:
        split: Name of the split.
        read: Pairs of lines in the files.
        written: Pairs in the cleaned split.
        kept: Whether bad pairs were written too. They are in all splits but those
            for training, so that line numbers stay those of the files.
        problems: Number of bad pairs by kind.
    """

    split: str
    read: int = 0
    written: int = 0
    kept: bool = False
    problems: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        line = f"{self.split}: {self.read:,} pairs read, {self.written:,} written"
        if not self.problems:
            return f"{line}, no bad lines"
        counts = ", ".join(f"{n:,} {kind}" for kind, n in self.problems.items())
        return f"{line}; {'kept although' if self.kept else 'skipped'}: {counts}"


class CleaningJob(NamedTuple):
    """A split to be cleaned.

    Attributes:
        split: Name of the split.
        shards: Its files, of which the lines follow one another.
        files: Source and target file to write.
        max_characters: Longest line; longer ones are counted as over-long.
        keep_bad: Whether to write bad pairs too, as far as they are text.
        unique: Whether to leave out pairs that came before.
    """

    split: str
    shards: Sequence[ParallelFiles]
    files: ParallelFiles
    max_characters: int
    keep_bad: bool
    unique: bool


# A function that cleans splits and returns a report on each.
Cleaner: TypeAlias = Callable[[Sequence[CleaningJob]], list[SplitReport]]


def clean_splits(jobs: Sequence[CleaningJob]) -> list[SplitReport]:
    """Cleans split after split, in this process.

    Raises:
        ValueError: If the two files of a shard do not have equally many lines.
    """
    return [
        write_clean(
            read_shards(job.shards),
            job.files,
            job.split,
            job.max_characters,
            job.keep_bad,
            SeenPairs() if job.unique else None,
        )
        for job in jobs
    ]


class SeenPairs:
    """Remembers which pairs there were, about 100 bytes for each."""

    def __init__(self) -> None:
        self._keys: set[bytes] = set()

    def __call__(self, source: str, target: str) -> bool:
        key, count = pair_key(source, target), len(self._keys)
        self._keys.add(key)
        return len(self._keys) == count


def pair_key(source: str, target: str) -> bytes:
    """16 bytes that are equal for equal pairs of texts, and for no others."""
    text = f"{source}\n{target}".encode()
    return hashlib.blake2b(text, digest_size=16).digest()


def good_pairs(
    pairs: Iterable[tuple[bytes, bytes] | None], max_characters: int
) -> Iterator[tuple[str, str]]:
    """The texts of the pairs in which nothing is wrong."""
    for pair in pairs:
        texts, problem = clean_pair(pair, max_characters)
        if not problem:
            yield texts


def read_shards(
    shards: Sequence[ParallelFiles],
) -> Generator[tuple[bytes, bytes], None, None]:
    """Yields the pairs of lines of one shard after another, as `read_parallel`."""
    for files in shards:
        yield from read_parallel(*files)


def read_parallel(
    source: Path, target: Path
) -> Generator[tuple[bytes, bytes], None, None]:
    """Yields pairs of lines of two files that must have equally many.

    Raises:
        ValueError: If they do not; raised after the last pair.
    """
    counts = [0, 0]
    for pair in zip_longest(read_byte_lines(source), read_byte_lines(target)):
        first, second = pair
        counts[0] += first is not None
        counts[1] += second is not None
        if first is not None and second is not None:
            yield first, second
    if counts[0] != counts[1]:
        raise ValueError(
            "The two files of a split must have equally many lines. Received: "
            f"{counts[0]:,} lines in {source} and {counts[1]:,} lines in {target}"
        )


def clean_line(line: bytes, max_characters: int) -> tuple[str, str | None]:
    """Returns the text of a line and what is wrong with it, if anything.

    Characters that some programs take for the end of a line become spaces: they
    would break the alignment of the two sides.
    """
    problem = None
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        text, problem = line.decode("utf-8", "replace"), PROBLEMS[1]
    if "\0" in text:
        text, problem = text.replace("\0", ""), problem or PROBLEMS[2]
    text = on_one_line(text).strip()
    if not text:
        problem = problem or PROBLEMS[3]
    elif len(text) > max_characters:
        problem = problem or PROBLEMS[4]
    return text, problem


def write_clean(
    pairs: Iterable[tuple[bytes, bytes] | None],
    files: tuple[Path, Path],
    split: str,
    max_characters: int,
    keep_bad: bool,
    is_repeated: IsRepeated | None = None,
) -> SplitReport:
    """Writes the pairs of a split as two plain UTF-8 files.

    Args:
        pairs: Source and target lines; `None` for a line that is no pair.
        files: Source and target file to write.
        split: Name of the split, for the report.
        max_characters: Longest line; longer ones are counted as over-long.
        keep_bad: Whether to write bad pairs too, as far as they are text.
        is_repeated: Which good pairs are repeated, and so are bad.

    Returns:
        The report on the split.
    """
    report = SplitReport(split, kept=keep_bad)
    problems: Counter[str] = Counter()
    with (
        open(files[0], "w", encoding="utf-8", newline="\n") as source,
        open(files[1], "w", encoding="utf-8", newline="\n") as target,
    ):
        for pair in pairs:
            report.read += 1
            texts, problem = clean_pair(pair, max_characters)
            if not problem and is_repeated is not None and is_repeated(*texts):
                problem = REPEATED
            if problem:
                problems[problem] += 1
            if problem and not keep_bad:
                continue
            report.written += 1
            source.write(texts[0] + "\n")
            target.write(texts[1] + "\n")
    report.problems = {kind: problems[kind] for kind in PROBLEMS if problems[kind]}
    return report


def clean_pair(
    pair: tuple[bytes, bytes] | None, max_characters: int
) -> tuple[tuple[str, str], str | None]:
    """Returns the texts of a pair and the first of its problems."""
    if pair is None:
        return ("", ""), PROBLEMS[0]
    source, source_problem = clean_line(pair[0], max_characters)
    target, target_problem = clean_line(pair[1], max_characters)
    problems = [problem for problem in (source_problem, target_problem) if problem]
    return (source, target), min(problems, key=PROBLEMS.index, default=None)
