"""Cleans parallel lines of any quality, and reports what was wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field
from hashlib import blake2b
from pathlib import Path

from keras_attnvariants.data.audio import check_recording
from keras_attnvariants.data.splits import BytePair
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.utils.lines import on_one_line
from keras_attnvariants.utils.machine import check_extra

# In the order in which a line is checked; a pair is counted under its first problem.
_NO_PAIR, _NO_UTF8, _NUL, _EMPTY, _TOO_LONG, _NO_RECORDING, _REPEATED = PROBLEMS = (
    "not two columns",
    "invalid UTF-8",
    "NUL",
    "empty",
    "over-long",
    "unreadable recording",
    "repeated",
)

# Bad recordings that a report shows; all are in its file.
_SHOWN = 5


@dataclass
class SplitReport:
    """Counts of the pairs read from and written to one split.

    Attributes:
        split: Name of the split.
        read: Pairs of lines in the files.
        written: Pairs in the cleaned split.
        kept: Whether bad pairs were written too. They are in all splits except those
            for training, to keep the line numbers of the files.
        problems: Number of bad pairs by kind.
        bad_recordings: The place of each bad recording, and what is wrong with it.
    """

    split: str
    read: int = 0
    written: int = 0
    kept: bool = False
    problems: dict[str, int] = field(default_factory=dict)
    bad_recordings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        line = f"{self.split}: {self.read:,} pairs read, {self.written:,} written"
        if not self.problems:
            return f"{line}, no bad lines"
        counts = ", ".join(f"{n:,} {kind}" for kind, n in self.problems.items())
        line = f"{line}; {'kept although' if self.kept else 'skipped'}: {counts}"
        return "\n  ".join([line, *self.bad_recordings[:_SHOWN]])


def clean_split(
    split: str,
    pairs: Iterable[BytePair],
    files: ParallelFiles,
    max_characters: int,
    keep_bad: bool = False,
    unique: bool = False,
    recordings: Path | None = None,
) -> SplitReport:
    """Writes the pairs of a split as two plain UTF-8 files.

    Repeated pairs are found by a 16-byte hash of each good pair, which takes about 100
    bytes of memory per pair.

    Args:
        split: Name of the split.
        pairs: Source and target line of each pair; `None` for a line that is no pair.
        files: Source and target file to write.
        max_characters: Longest line; longer ones are counted as over-long.
        keep_bad: Whether to write bad pairs too, as far as they are text.
        unique: Whether to leave out repeated pairs.
        recordings: If sources are paths of recordings, the folder that they are
            relative to. They are written as absolute paths, or `""` if unreadable.
    """
    if recordings is not None:
        check_extra("Recordings", "speech", ["soundfile", "soxr"])
    report = SplitReport(split, kept=keep_bad)
    problems: Counter[str] = Counter()
    seen: set[bytes] = set()
    with (
        open(files.source, "w", encoding="utf-8", newline="\n") as source,
        open(files.target, "w", encoding="utf-8", newline="\n") as target,
    ):
        for pair in pairs:
            report.read += 1
            texts, problem = clean_pair(pair, max_characters)
            if recordings is not None and texts[0]:
                whole, reason = clean_recording(recordings / texts[0])
                texts = whole, texts[1]
                if reason and not problem:
                    problem = _NO_RECORDING
                    report.bad_recordings.append(reason)
            if unique and not problem:
                key = blake2b("\n".join(texts).encode(), digest_size=16).digest()
                problem = _REPEATED if key in seen else None
                seen.add(key)
            if problem:
                problems[problem] += 1
            if not problem or keep_bad:
                report.written += 1
                source.write(texts[0] + "\n")
                target.write(texts[1] + "\n")
    report.problems = {kind: problems[kind] for kind in PROBLEMS if problems[kind]}
    return report


def clean_pair(
    pair: BytePair, max_characters: int
) -> tuple[tuple[str, str], str | None]:
    """Returns the texts of a pair and the first of its problems."""
    if pair is None:
        return ("", ""), _NO_PAIR
    source, source_problem = clean_line(pair[0], max_characters)
    target, target_problem = clean_line(pair[1], max_characters)
    problems = [problem for problem in (source_problem, target_problem) if problem]
    return (source, target), min(problems, key=PROBLEMS.index, default=None)


def clean_recording(path: Path) -> tuple[str, str]:
    """The absolute path of a recording and `""`, or `""` and what is wrong with it."""
    try:
        check_recording(path)
    except (OSError, ValueError) as error:
        return "", on_one_line(str(error))
    return str(path.resolve()), ""


def clean_line(line: bytes, max_characters: int) -> tuple[str, str | None]:
    """Returns the text of a line and what is wrong with it, if anything.

    Characters that some programs take for the end of a line become spaces: they
    would break the alignment of the two sides.
    """
    problem = None
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        text, problem = line.decode("utf-8", "replace"), _NO_UTF8
    if "\0" in text:
        text, problem = text.replace("\0", ""), problem or _NUL
    text = on_one_line(text).strip()
    if not text:
        problem = problem or _EMPTY
    elif len(text) > max_characters:
        problem = problem or _TOO_LONG
    return text, problem
