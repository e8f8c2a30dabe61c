"""Health of runs, models, SavedModels and corpora: damage, and what still works.

Nothing is changed.
"""

import hashlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_attnvariants.cli.doctor import DAMAGED
from keras_attnvariants.cli.doctor import NOTE
from keras_attnvariants.cli.doctor import OK
from keras_attnvariants.cli.doctor import Diagnosis
from keras_attnvariants.cli.doctor import Finding
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.data.model_folders import WEIGHTS
from keras_attnvariants.data.splits import find_splits
from keras_attnvariants.data.splits import split_files
from keras_attnvariants.data.text_files import check_text_file
from keras_attnvariants.data.text_files import read_byte_lines
from keras_attnvariants.serving.processor import ProcessorError
from keras_attnvariants.serving.processor import check_processor
from keras_attnvariants.serving.versions import versions
from keras_attnvariants.training.folder import AVERAGED
from keras_attnvariants.training.folder import BEST
from keras_attnvariants.training.folder import CHECKPOINTS
from keras_attnvariants.training.folder import LOG
from keras_attnvariants.training.runs import read_log
from keras_attnvariants.training.settings import CONFIG
from keras_attnvariants.training.settings import STATES
from keras_attnvariants.training.state import PROGRESS
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.utils.caches import default_cache
from keras_attnvariants.utils.files import TEMPORARY
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import find_damage


def reason(error: Exception) -> str:
    """The message of an error without what was received."""
    return str(error).split(" Received: ")[0].rstrip(".")


def told(error: Exception) -> tuple[str, str]:
    """What an error says is wrong, and what to do about it."""
    text, _, advice = reason(error).partition(": ")
    return text, advice[:1].upper() + advice[1:]


def translate(option: str, folder: Path) -> str:
    """The command that translates with a model."""
    return shlex.join(["kav", "translate", option, str(folder)])


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run, or what is left of one."""
    return (folder / LOG).is_file() or any(
        (folder / name).is_dir() for name in (STATES, CHECKPOINTS)
    )


def is_model(folder: Path) -> bool:
    """Whether a folder is a model folder, or what is left of one."""
    return any((folder / name).is_file() for name in (WEIGHTS, CONFIG))


def is_saved_model(folder: Path) -> bool:
    """Whether a folder is a SavedModel, or one of versions of it."""
    here = [folder, *(folder / str(number) for number in versions(folder))]
    return any((path / "saved_model.pb").is_file() for path in here)


def examine_run(folder: Path) -> Diagnosis:
    """Examines the folder of a run."""
    states, step = _states(folder)
    models = [
        finding
        for name in (BEST, AVERAGED)
        if (folder / name).is_dir()
        for finding in _files(folder / name, (CONFIG, WEIGHTS), name)
    ]
    broken = {finding.name.split("/")[0] for finding in models if finding.state != OK}
    intact = [n for n in (BEST, AVERAGED) if (folder / n).is_dir() and n not in broken]
    log = _log(folder / LOG)
    settings = list(_settings(folder))
    findings = [*settings, log, *states, *_checkpoints(folder), *models]
    if not (folder / BEST).is_dir():
        findings.append(Finding(NOTE, BEST, "no model yet: none was validated"))
    findings += [
        Finding(
            NOTE, path.name, "left by a process that was killed; a resume removes it"
        )
        for path in sorted(folder.glob(f"{TEMPORARY}*"))
    ]
    usable = [translate("--model", folder / name) for name in intact]
    if step is not None and all(f.state != DAMAGED for f in settings):
        usable.append(f"kav train with the same options continues at update {step:,}")
    return Diagnosis("a run", findings, usable)


def examine_model(folder: Path) -> Diagnosis:
    """Examines a model folder."""
    findings = list(_files(folder, (CONFIG, WEIGHTS), ""))
    usable = []
    if all(finding.state != DAMAGED for finding in findings):
        if (folder / TOKENIZER).is_file():
            usable = [translate("--model", folder)]
        else:
            findings.append(Finding(NOTE, TOKENIZER, "none: takes token ids alone"))
            usable = [f"keras_attnvariants.load_model({str(folder)!r})"]
    return Diagnosis("a model", findings, usable)


def examine_saved_model(folder: Path) -> Diagnosis:
    """Examines a SavedModel, or all versions of it."""
    numbers = versions(folder)
    places = [folder / str(n) for n in numbers] if numbers else [folder]
    findings, usable = [], []
    for place in places:
        found = list(_files(place, ("saved_model.pb",), place.name if numbers else ""))
        findings += found
        if all(finding.state != DAMAGED for finding in found):
            wrong = list(_processor(place))
            findings += wrong
            if not wrong:
                usable.append(translate("--saved-model", place))
    return Diagnosis("a SavedModel", findings, usable)


def _processor(folder: Path) -> Iterator[Finding]:
    """One finding if a SavedModel cannot be used here."""
    try:
        check_processor(folder)
    except (DamagedFolderError, ProcessorError) as error:
        yield Finding(DAMAGED, folder.name, *told(error))


def _files(folder: Path, required: tuple[str, ...], prefix: str) -> Iterator[Finding]:
    """One finding if the folder is as it was written, or one for each damaged file."""
    damages = list(find_damage(folder, required))
    for damage in damages:
        text = reason(damage)
        yield Finding(
            DAMAGED,
            prefix or folder.name,
            text,
            "Restore it from a copy, or make it anew"
            + (": the next better validation of a resumed run does" if prefix else ""),
        )
    if not damages:
        size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
        yield Finding(OK, prefix or folder.name, f"as written, {size / 1e6:.1f} MB")


def _settings(folder: Path) -> Iterator[Finding]:
    """Examines the settings of a run, and its tokenizer."""
    settings: dict[str, Any] = {}
    try:
        settings = read_json(folder / CONFIG)
        if not {"training", "model"} <= settings.keys():
            raise DamagedFolderError(f"{CONFIG} is incomplete")
        yield Finding(OK, CONFIG, "the settings of the run")
    except (DamagedFolderError, AttributeError) as error:
        yield Finding(
            DAMAGED,
            CONFIG,
            reason(error),
            "Restore it from a copy to resume; the models do not need it",
        )
        settings = {}
    expected, path = settings.get("tokenizer"), folder / TOKENIZER
    if path.is_file():
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if expected in (None, found):
            yield Finding(OK, TOKENIZER, "the subwords of the run")
            return
        text = "not what was written: its sha256 differs from that in config.json"
    elif expected is None:
        return
    else:
        text = "missing"
    advice = f"Copy {shlex.quote(str(folder / BEST / TOKENIZER))} there"
    yield Finding(DAMAGED, TOKENIZER, text, advice)


def _log(path: Path) -> Finding:
    """Examines the log of a run."""
    if not path.is_file():
        advice = "Give the folder of a model, best/ or averaged/, instead of the run"
        return Finding(DAMAGED, LOG, "missing", advice)
    try:
        steps = [int(event["step"]) for event in read_log(path)]
    except (ValueError, TypeError, RecursionError) as error:
        return Finding(DAMAGED, LOG, *told(error))
    text = path.read_bytes()
    if text and not text.endswith(b"\n"):
        return Finding(NOTE, LOG, "its last line is cut short; a resume removes it")
    last = f"up to update {steps[-1]:,}" if steps else "empty"
    return Finding(OK, LOG, f"{len(steps):,} records, {last}")


def _states(folder: Path) -> tuple[list[Finding], int | None]:
    """Examines the saved states, and finds the update that a resume starts from."""
    findings: list[Finding] = []
    step = None
    for path in TrainingState(folder / STATES).paths():
        name = f"{STATES}/{path.name}"
        damage = next(find_damage(path), None)
        if damage is None:
            step = int(read_json(path / PROGRESS)["step"])
            findings.append(Finding(OK, name, f"of update {step:,}"))
        else:
            text = reason(damage)
            findings.append(Finding(DAMAGED, name, text, "A resume passes over it"))
    if not findings:
        text = "no state yet: training would start from the beginning"
        return [Finding(NOTE, STATES, text)], None
    if step is None:
        advice = "Train again in another folder; the models do not need the states"
        findings.append(Finding(DAMAGED, STATES, "no state is intact", advice))
    return findings, step


def _checkpoints(folder: Path) -> Iterator[Finding]:
    """Examines the weights that are averaged at the end."""
    paths = sorted((folder / CHECKPOINTS).glob("step-*"))
    damaged = {path: next(find_damage(path), None) for path in paths}
    intact = sum(damage is None for damage in damaged.values())
    if not (folder / CHECKPOINTS).is_dir():
        if (folder / BEST).is_dir():
            text = "missing: an average would have the last weights alone"
            yield Finding(NOTE, CHECKPOINTS, text)
    else:
        yield Finding(OK, CHECKPOINTS, f"{intact} weights to average")
    for path, damage in damaged.items():
        if damage is not None:
            text = reason(damage)
            name = f"{CHECKPOINTS}/{path.name}"
            yield Finding(DAMAGED, name, text, "The average leaves it out")


def is_corpus(folder: Path) -> bool:
    """Whether a folder has a split in two languages."""
    return folder.is_dir() and any(len(by) > 1 for by in split_files(folder).values())


def examine_corpus(folder: Path) -> Diagnosis:
    """Examines a folder of parallel text files."""
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
    source, target = sorted(languages)[:2]
    try:
        find_splits(folder, (source, target))
    except ValueError as error:
        findings.append(Finding(DAMAGED, folder.name, *told(error)))
    usable = []
    if not any(finding.state == DAMAGED for finding in findings):
        data = ["--data", str(folder), "--source", source, "--target", target]
        usable = [shlex.join(data)]
    return Diagnosis("a corpus", findings, usable)


def _split(split: str, paths: list[Path]) -> list[Finding]:
    """Examines the files of one split."""
    findings = [_text(path) for path in paths]
    if all(finding.state == OK for finding in findings):
        counts = {path.name: sum(1 for _ in read_byte_lines(path)) for path in paths}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{count:,} in {name}" for name, count in counts.items())
            advice = "Line i of one must translate line i of the other"
            text = f"unequal numbers of lines: {listed}"
            findings.append(Finding(DAMAGED, split, text, advice))
    return findings


def examine_table(path: Path) -> Diagnosis:
    """Examines a TSV file."""
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
    usable = [] if finding.state == DAMAGED else [shlex.join(["--data", str(path)])]
    return Diagnosis("a corpus in one file", [finding], usable)


def examine_cached(name: str) -> Diagnosis:
    """Examines what the cache has of a registered corpus."""
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
    """Examines one text file."""
    try:
        check_text_file(path)
        filled = [bool(line.strip()) for line in read_byte_lines(path)]
    except ValueError as error:
        problem, _, _ = str(error).partition(" Received: ")
        text, _, advice = problem.partition(". ")
        advice = advice or "Restore it from a copy"
        return Finding(DAMAGED, path.name, text.rstrip("."), advice)
    if not any(filled):
        return Finding(DAMAGED, path.name, "empty", "Restore it from a copy")
    empty = filled.count(False)
    rest = f", {empty:,} of them empty" if empty else ""
    return Finding(OK, path.name, f"{len(filled):,} lines{rest}")
