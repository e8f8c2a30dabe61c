"""Translates text files with an exported model in many processes."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from typing import NamedTuple

from keras_attnvariants.beam import engine
from keras_attnvariants.beam.engine import Part
from keras_attnvariants.utils.files import TEMPORARY
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.lines import on_one_line

if TYPE_CHECKING:
    from keras_attnvariants.serving.saved import SavedTranslator

BAD = ".bad.tsv"
# A worker takes a part of a file at a time, of at least so many bytes.
SMALLEST_PART = 1 << 16
_MOST_PARTS = 4096
# Lines of a part that are translated together, those of about equal length in a batch.
LINES_PER_BLOCK = 512
_loading = threading.Lock()


class Translated(NamedTuple):
    """A translated file.

    Attributes:
        file: its translations; an empty line for a bad one.
        lines: number of its lines.
        bad: numbers of bad lines, by reason.
    """

    file: Path
    lines: int
    bad: dict[str, int]


def translate_files(
    files: Sequence[os.PathLike[str] | str],
    saved_model: os.PathLike[str] | str,
    output: os.PathLike[str] | str,
    *,
    workers: int = 1,
    options: Sequence[str] = (),
) -> list[Translated]:
    """Translates text files of one sentence per line, with an exported model.

    Every process loads the model once. Line `i` of an output is the translation of
    line `i` of the file. Lines that are not UTF-8, have a NUL, are longer than the
    model reads, or have no translation are bad: their translation is empty, and
    `<name>.bad.tsv` lists their numbers, from 1, with the reasons. The outputs do not
    depend on the number of workers.

    Args:
        files: Plain text in UTF-8, with names that differ.
        saved_model: The folder of an exported model.
        output: A folder that does not exist yet; it appears when all is translated.
        workers: Processes on this machine.
        options: Options of Beam instead, such as `["--runner=FlinkRunner", …]`. All
            workers must see files, model and output under the same paths.

    Returns:
        What became of each file.

    Raises:
        FileNotFoundError: If a file or the model is missing.
        ValueError: If Beam is not installed, `output` exists, two files have one name,
            or the model does not translate text.
        RuntimeError: By Beam, if a worker fails.

    Example:

    ```python
    found = kav.beam.translate_files(["a.en", "b.en"], "saved_models/en-de", "out")
    print(sum(file.lines for file in found))
    ```
    """
    from keras_attnvariants.serving.folders import newest_version

    engine.check_beam()
    engine.arguments(options, workers)
    paths = [Path(file).absolute() for file in files]
    _check_files(paths, Path(output))
    version = str(newest_version(Path(saved_model).absolute()))
    with new_folder(Path(output).absolute()) as folder:
        scratch = folder.path / f"{TEMPORARY}parts"
        scratch.mkdir()
        parts = {path: _parts_of(path, scratch / path.name) for path in paths}
        todo = chain.from_iterable(parts.values())
        with engine.pipeline(options, workers) as steps:
            engine.for_each(
                steps,
                "translate",
                todo,
                lambda part: translate_part(part, _translator(version)),
            )
        found = [
            _join(of_file, folder.path / path.name) for path, of_file in parts.items()
        ]
        shutil.rmtree(scratch)
    return [entry._replace(file=Path(output) / entry.file.name) for entry in found]


def _check_files(paths: Sequence[Path], output: Path) -> None:
    """Raises unless all files can be read and the outputs have a place.

    Raises:
        FileNotFoundError, ValueError: as `translate_files`.
    """
    if not paths:
        raise ValueError("`files` must name at least one file. Received: none")
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"There is no such file. Received: {path}")
    [(name, most)] = Counter(path.name for path in paths).most_common(1)
    if most > 1:
        raise ValueError(
            f"`files` must have names that differ. Received: {most} files {name}"
        )
    if output.exists():
        raise ValueError(f"`output` must not exist yet. Received: {output}")


def _parts_of(file: Path, output: Path) -> list[Part]:
    """The parts of a file: many enough for many workers, and few enough for a disk."""
    size = max(SMALLEST_PART, file.stat().st_size // _MOST_PARTS)
    return engine.parts_of(file, output, size)


def translate_part(part: Part, translator: SavedTranslator) -> Counter[str]:
    """Writes the translations of a part, and what is wrong with which of its lines.

    Returns:
        The numbers of its lines that are translated, and that are bad for a reason.
    """
    texts: list[str] = []
    bad: list[tuple[int, str]] = []
    lines = part.lines(drop_mark=True)
    while block := list(islice(lines, LINES_PER_BLOCK)):
        found, problems = translated(block, translator)
        bad += [(len(texts) + i, reason) for i, reason in problems.items()]
        texts += found
    record = {"texts": texts, "bad": bad}
    write_file(Path(f"{part.output}.json"), json.dumps(record).encode())
    reasons = Counter(f"bad: {reason}" for _, reason in bad)
    return Counter({"lines translated": len(texts) - len(bad)}) + reasons


def translated(
    lines: Sequence[bytes], translator: SavedTranslator
) -> tuple[list[str], dict[int, str]]:
    """A translation for each line, and what is wrong by the number of the line."""
    from keras_attnvariants.serving.translator import STATUS_DOCS
    from keras_attnvariants.serving.translator import Status

    longest = translator.info["options"]["max_characters"]
    problems = [problem_of(line, longest) for line in lines]
    bad = {i: problem for i, problem in enumerate(problems) if problem}
    texts = {i: lines[i].decode("utf-8") for i in range(len(lines)) if i not in bad}
    todo = {i: text for i, text in texts.items() if text.strip()}
    results = [""] * len(lines)
    if not todo:
        return results, bad
    found = translator.predict({"text": list(todo.values())})
    for place, i in enumerate(todo):
        status = Status(int(found["status"][place]))
        if status != Status.OK:
            bad[i] = STATUS_DOCS[status]
        elif found["truncated"][place]:
            bad[i] = "too many tokens"
        else:
            results[i] = on_one_line(found["translations"][place])
    return results, dict(sorted(bad.items()))


def problem_of(line: bytes, longest: int) -> str | None:
    """Why a line cannot be translated, as far as its text shows it."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "invalid UTF-8"
    if "\0" in text:
        return "NUL"
    return f"more than {longest:,} characters" if len(text) > longest else None


def _join(parts: Sequence[Part], whole: Path) -> Translated:
    """Writes the translations of a file and the list of its bad lines."""
    reasons: Counter[str] = Counter()
    entries, lines = [], 0
    with whole.open("w", encoding="utf-8", newline="\n") as output:
        for part in parts:
            record = json.loads(Path(f"{part.output}.json").read_bytes())
            for line, reason in record["bad"]:
                entries.append(f"{lines + line + 1}\t{reason}\n")
                reasons[reason] += 1
            output.writelines(f"{text}\n" for text in record["texts"])
            lines += len(record["texts"])
    if entries:
        whole.with_name(whole.name + BAD).write_text("".join(entries), "utf-8")
    return Translated(whole, lines, dict(reasons))


def _translator(saved_model: str) -> SavedTranslator:
    """The model, loaded once in a process."""
    with _loading:
        return _loaded(saved_model)


@lru_cache(maxsize=1)
def _loaded(saved_model: str) -> SavedTranslator:
    from keras_attnvariants.serving.saved import SavedTranslator

    return SavedTranslator(saved_model)
