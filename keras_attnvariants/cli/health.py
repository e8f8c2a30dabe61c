"""What is in a run, a model or a SavedModel, what of it is damaged, what still works.

Nothing is changed.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import NamedTuple

from keras_attnvariants.models.saving import TOKENIZER
from keras_attnvariants.models.saving import WEIGHTS
from keras_attnvariants.serving.processor import ProcessorError
from keras_attnvariants.serving.processor import check_processor
from keras_attnvariants.serving.versions import versions
from keras_attnvariants.training.loop import AVERAGED
from keras_attnvariants.training.loop import BEST
from keras_attnvariants.training.loop import CHECKPOINTS
from keras_attnvariants.training.loop import LOG
from keras_attnvariants.training.settings import CONFIG
from keras_attnvariants.training.settings import STATES
from keras_attnvariants.training.state import PROGRESS
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.utils.files import TEMPORARY
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import find_damage

OK, NOTE, DAMAGED = "ok", "note", "damaged"


class Finding(NamedTuple):
    """What was found about one file or folder.

    Attributes:
        state: `"ok"`, `"note"` or `"damaged"`.
        name: of the file or folder.
        text: what was found.
        advice: what to do, for what is damaged.
    """

    state: str
    name: str
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What was found in one place.

    Attributes:
        kind: what it is, such as `"a run"`.
        findings: about its files and folders.
        usable: what still works, a command or a sentence each.
    """

    kind: str
    findings: list[Finding]
    usable: list[str]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is damaged."""
        return all(finding.state != DAMAGED for finding in self.findings)


def reason(error: Exception) -> str:
    """What is wrong, without what was received."""
    return str(error).split(" Received: ")[0].rstrip(".")


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
    """What is in the folder of a run."""
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
    usable = [f"kav translate --model {folder / name}" for name in intact]
    if step is not None and all(f.state != DAMAGED for f in settings):
        usable.append(f"kav train with the same options continues at update {step:,}")
    return Diagnosis("a run", findings, usable)


def examine_model(folder: Path) -> Diagnosis:
    """What is in a model folder."""
    findings = list(_files(folder, (CONFIG, WEIGHTS), ""))
    usable = []
    if all(finding.state != DAMAGED for finding in findings):
        if (folder / TOKENIZER).is_file():
            usable = [f"kav translate --model {folder}"]
        else:
            findings.append(Finding(NOTE, TOKENIZER, "none: takes token ids alone"))
            usable = [f"keras_attnvariants.load_model({str(folder)!r})"]
    return Diagnosis("a model", findings, usable)


def examine_saved_model(folder: Path) -> Diagnosis:
    """What is in a SavedModel, or in all versions of it."""
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
                usable.append(f"kav translate --saved-model {place}")
    return Diagnosis("a SavedModel", findings, usable)


def _processor(folder: Path) -> Iterator[Finding]:
    """One finding if a SavedModel cannot be used here."""
    try:
        check_processor(folder)
    except (DamagedFolderError, ProcessorError) as error:
        what, _, advice = reason(error).partition(": ")
        yield Finding(DAMAGED, folder.name, what, advice)


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
    """Of the settings of a run, and of its tokenizer."""
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
    advice = f"Copy {folder / BEST / TOKENIZER} there"
    yield Finding(DAMAGED, TOKENIZER, text, advice)


def _log(path: Path) -> Finding:
    """Of the log of a run."""
    if not path.is_file():
        advice = "Give the folder of a model, best/ or averaged/, instead of the run"
        return Finding(DAMAGED, LOG, "missing", advice)
    *lines, rest = path.read_bytes().split(b"\n")
    steps = []
    for number, line in enumerate(lines, 1):
        try:
            steps.append(int(json.loads(line)["step"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return Finding(
                DAMAGED,
                LOG,
                f"line {number} is no record of a log",
                "Remove the line: the others are still of use",
            )
    if rest:
        return Finding(NOTE, LOG, "its last line is cut short; a resume removes it")
    last = f"up to update {steps[-1]:,}" if steps else "empty"
    return Finding(OK, LOG, f"{len(lines):,} records, {last}")


def _states(folder: Path) -> tuple[list[Finding], int | None]:
    """Of the saved states; and the update that a resume starts from."""
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
    """Of the weights that are averaged at the end."""
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
