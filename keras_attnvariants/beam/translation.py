"""Translates text files with an exported model in many processes."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from keras_attnvariants.beam import engine
from keras_attnvariants.beam.engine import Part
from keras_attnvariants.beam.engine import parts_of
from keras_attnvariants.utils.files import TEMPORARY
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.lines import on_one_line

if TYPE_CHECKING:
    from keras_attnvariants.serving.saved import SavedTranslator

BAD = ".bad.tsv"
# Lines of a part that are translated together, those of about equal length in a batch.
LINES_PER_BLOCK = 512
_loading = threading.Lock()


class Translated(NamedTuple):
    """A translated file.

    Attributes:
        file: its translations; an empty line for a bad one.
        lines: how many it has.
        bad: numbers of bad lines, by reason.
    """

    file: Path
    lines: int
    bad: dict[str, int]


class Block(NamedTuple):
    """Some lines of a part.

    Attributes:
        part: the stem of its outputs; the key that keeps the order.
        first: number of the first line within the part.
        lines: bytes.
    """

    part: str
    first: int
    lines: list[bytes]


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
    from keras_attnvariants.serving.versions import newest_version

    engine.check_beam()
    engine.arguments(options, workers)
    paths = [Path(file).absolute() for file in files]
    _check_files(paths, Path(output))
    version = str(newest_version(Path(saved_model).absolute()))
    with new_folder(Path(output).absolute()) as folder:
        scratch = folder.path / f"{TEMPORARY}parts"
        scratch.mkdir()
        parts = {path: parts_of(path, scratch / path.name) for path in paths}
        todo = [tuple(part) for of_file in parts.values() for part in of_file]
        with engine.pipeline(options, workers) as steps:
            _put_together(steps, todo, version)
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


def blocks_of(part: Part) -> Iterator[Block]:
    """The lines of a part, some at a time; one empty block if there are none."""
    lines, first = part.lines(drop_mark=True), 0
    while (block := list(islice(lines, LINES_PER_BLOCK))) or not first:
        yield Block(part.output, first, block)
        if not block:
            return
        first += len(block)


def translated(
    block: Block, translator: SavedTranslator
) -> tuple[list[str], dict[int, str]]:
    """A translation for each line of a block, and what is wrong by line of the part."""
    from keras_attnvariants.serving.results import STATUS_DOCS
    from keras_attnvariants.serving.results import Status

    longest = translator.info["options"]["max_characters"]
    texts, bad = [""] * len(block.lines), {}
    for i, line in enumerate(block.lines):
        problem = problem_of(line, longest)
        if problem:
            bad[i] = problem
        else:
            texts[i] = line.decode("utf-8")
    todo = [i for i in range(len(texts)) if texts[i].strip()]
    results = [""] * len(texts)
    if todo:
        found = translator.predict({"text": [texts[i] for i in todo]})
        for place, i in enumerate(todo):
            status = Status(int(found["status"][place]))
            if status != Status.OK:
                bad[i] = STATUS_DOCS[status]
            elif found["truncated"][place]:
                bad[i] = "too many tokens"
            else:
                results[i] = on_one_line(found["translations"][place])
    return results, {block.first + i: reason for i, reason in sorted(bad.items())}


def problem_of(line: bytes, longest: int) -> str | None:
    """Why a line cannot be translated, as far as its text shows it."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "invalid UTF-8"
    if "\0" in text:
        return "NUL"
    return f"more than {longest:,} characters" if len(text) > longest else None


def write_part(entry: tuple[str, dict[str, Iterable[Any]]]) -> None:
    """Writes the translations of a part, and what is wrong with which of its lines."""
    part, found = entry
    results = [text for _, texts in sorted(found["translated"]) for text in texts]
    bad = sorted(found["bad"])
    write_file(Path(f"{part}.text"), "".join(f"{t}\n" for t in results).encode())
    record = {"lines": len(results), "bad": bad}
    write_file(Path(f"{part}.json"), json.dumps(record).encode())


def _translate_and_count(block: tuple[Any, ...], saved_model: str) -> Iterator[Any]:
    """A block's translations in a pipeline, with its bad lines as another output."""
    import apache_beam as beam

    part, first, lines = block
    results, bad = translated(Block(part, first, lines), _translator(saved_model))
    engine.count("translate", "lines translated", len(results) - len(bad))
    yield part, (first, results)
    for line, reason in bad.items():
        engine.count("translate", f"bad: {reason}")
        yield beam.pvalue.TaggedOutput("bad", (part, (line, reason)))


def _put_together(steps: Any, parts: Sequence[Any], saved_model: str) -> None:
    """The steps from parts of files to their translations."""
    import apache_beam as beam

    outputs = (
        steps
        | "Parts" >> beam.Create(parts)
        | "Lines" >> beam.FlatMap(lambda part: map(tuple, blocks_of(Part(*part))))
        | "Spread" >> beam.Reshuffle()
        | "Translate"
        >> beam.FlatMap(_translate_and_count, saved_model).with_outputs(
            "bad", main="translated"
        )
    )
    (
        {"translated": outputs.translated, "bad": outputs.bad}
        | "By part" >> beam.CoGroupByKey()
        | "Write" >> beam.Map(write_part)
    )


def _join(parts: Sequence[Part], whole: Path) -> Translated:
    """Writes the translations of a file and the list of its bad lines."""
    reasons: Counter[str] = Counter()
    entries, lines = [], 0
    with whole.open("wb") as output:
        for part in parts:
            output.write(Path(f"{part.output}.text").read_bytes())
            record = json.loads(Path(f"{part.output}.json").read_bytes())
            for line, reason in record["bad"]:
                entries.append(f"{lines + line + 1}\t{reason}\n")
                reasons[reason] += 1
            lines += record["lines"]
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
