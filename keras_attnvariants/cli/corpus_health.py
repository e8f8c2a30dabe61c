"""What is in a parallel corpus, and which of its files do not go together."""

from pathlib import Path

from keras_attnvariants.cli.health import DAMAGED
from keras_attnvariants.cli.health import NOTE
from keras_attnvariants.cli.health import OK
from keras_attnvariants.cli.health import Diagnosis
from keras_attnvariants.cli.health import Finding
from keras_attnvariants.cli.health import reason
from keras_attnvariants.data.encoding import check_text_file
from keras_attnvariants.data.files import read_byte_lines
from keras_attnvariants.data.folders import split_files
from keras_attnvariants.utils.caches import default_cache
from keras_attnvariants.utils.folders import find_damage


def is_corpus(folder: Path) -> bool:
    """Whether a folder has a split in two languages."""
    return folder.is_dir() and any(len(by) > 1 for by in split_files(folder).values())


def examine_corpus(folder: Path) -> Diagnosis:
    """What is in a folder of parallel text files."""
    splits = split_files(folder)
    languages = {language for by in splits.values() if len(by) > 1 for language in by}
    findings = []
    for split, by in splits.items():
        if len(by) > 1:
            findings += _split(split, [path for paths in by.values() for path in paths])
        elif set(by) <= languages:
            findings.append(Finding(NOTE, split, f"left out: only {', '.join(by)}"))
    if "train" not in splits:
        findings.append(Finding(NOTE, "train", "no such split: good for scoring alone"))
    usable = []
    if not any(finding.state == DAMAGED for finding in findings):
        source, target = sorted(languages)[:2]
        usable = [f"--data {folder} --source {source} --target {target}"]
    return Diagnosis("a corpus", findings, usable)


def _split(split: str, paths: list[Path]) -> list[Finding]:
    """Of the files of one split."""
    findings = [_text(path) for path in paths]
    if all(finding.state == OK for finding in findings):
        counts = {path.name: _lines(path) for path in paths}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{count:,} in {name}" for name, count in counts.items())
            advice = "Line i of one must translate line i of the other"
            text = f"unequal numbers of lines: {listed}"
            findings.append(Finding(DAMAGED, split, text, advice))
    return findings


def examine_table(path: Path) -> Diagnosis:
    """What is in a TSV file."""
    finding = _text(path)
    if finding.state == OK:
        cells = [line.count(b"\t") + 1 for line in read_byte_lines(path)]
        wrong = sum(count != 2 for count in cells)
        if not cells or wrong > len(cells) / 2:
            text = f"{wrong:,} of {len(cells):,} lines have not two columns"
            advice = "A TSV file has a source, a tab and a target in each line"
            finding = Finding(DAMAGED, path.name, text, advice)
        elif wrong:
            text = f"{wrong:,} of {len(cells):,} lines are left out: not two columns"
            finding = Finding(NOTE, path.name, text)
    usable = [] if finding.state == DAMAGED else [f"--data {path}"]
    return Diagnosis("a corpus in one file", [finding], usable)


def examine_cached(name: str) -> Diagnosis:
    """What the cache has of a registered corpus."""
    findings = []
    for kind in ("sources", "corpora"):
        for folder in sorted((default_cache() / kind).glob(f"{name}-*")):
            for damage in find_damage(folder):
                text = reason(damage)
                advice = "It is made anew when it is next used"
                findings.append(Finding(DAMAGED, folder.name, text, advice))
            if not any(finding.name == folder.name for finding in findings):
                findings.append(Finding(OK, folder.name, "as written"))
    if not findings:
        findings = [Finding(NOTE, name, "not fetched yet; its first use does")]
    return Diagnosis("a registered corpus", findings, [f"--data {name}"])


def _text(path: Path) -> Finding:
    """Of one file of text."""
    try:
        check_text_file(path)
        count = _lines(path)
        empty = sum(not line.strip() for line in read_byte_lines(path))
    except ValueError as error:
        problem, _, _ = str(error).partition(" Received: ")
        text, _, advice = problem.partition(". ")
        advice = advice or "Restore it from a copy"
        return Finding(DAMAGED, path.name, text.rstrip("."), advice)
    if not count:
        return Finding(DAMAGED, path.name, "empty", "Restore it from a copy")
    rest = f", {empty:,} of them empty" if empty else ""
    return Finding(OK, path.name, f"{count:,} lines{rest}")


def _lines(path: Path) -> int:
    return sum(1 for _ in read_byte_lines(path))
