"""Token files that many processes write, the same as one process does."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import chain
from itertools import islice
from pathlib import Path

import numpy as np

from keras_attnvariants.beam import engine
from keras_attnvariants.beam.engine import Part
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import pipeline
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.data.token_files import write_rows
from keras_attnvariants.utils.folders import new_folder

# Bytes of text that a worker takes at a time.
PART_BYTES = 1 << 24


def write_tokens(
    files: ParallelFiles,
    tokenizer: Tokenizer,
    into: Path,
    options: Sequence[str],
    workers: int,
) -> None:
    """Writes the token files of a split, as `keras_attnvariants.data.pipeline` does.

    Small files are tokenised in this process, large ones a part at a time.

    Args:
        files: The split.
        tokenizer: The tokenizer of both languages.
        into: Folder to write.
        options: Options of Beam.
        workers: Processes on this machine, if the options name no runner.
    """
    parts = {
        into / side: engine.parts_of(file, into / side, PART_BYTES)
        for side, file in zip(pipeline.SIDES, files, strict=True)
    }
    if all(len(of_side) <= 1 for of_side in parts.values()):
        pipeline.write_tokens(files, tokenizer, into)
        return
    todo = chain.from_iterable(parts.values())
    with engine.pipeline(options, workers) as steps:
        engine.for_each(steps, todo, _tokenize_and_count, tokenizer.model_bytes)
    for path, of_side in parts.items():
        join_tokens([Path(part.output) for part in of_side], path)


def _tokenize_and_count(part: Part, model: bytes) -> None:
    """Tokenises a part in a pipeline, which counts its lines."""
    engine.count("prepare", "lines tokenised", tokenize_part(part, model))


def tokenize_part(part: Part, model: bytes) -> int:
    """Writes a folder with the tokens of a part, and returns how many lines it has.

    What a worker began and another one ended is written once.
    """
    tokenizer = Tokenizer(model).tf_tokenizer()
    lines = part.lines(drop_mark=False)
    blocks = iter(lambda: list(islice(lines, pipeline.LINES_PER_BLOCK)), [])
    rows = map(pipeline.flat_rows, map(tokenizer.tokenize, blocks))
    with new_folder(Path(part.output)) as folder:
        write_rows(rows, folder.path / "part")
        return (folder.path / "part.offsets").stat().st_size // 8 - 1


def join_tokens(folders: Sequence[Path], path: Path) -> None:
    """Joins the token files of parts, whose folders are removed."""
    ids = [folder / "part.ids" for folder in folders]
    engine.join(ids, path.with_suffix(".ids"))
    end = 0
    with path.with_suffix(".offsets").open("wb") as output:
        np.zeros(1, np.int64).tofile(output)
        for folder in folders:
            ends = end + np.fromfile(folder / "part.offsets", np.int64)
            ends[1:].tofile(output)
            end = int(ends[-1])
            shutil.rmtree(folder)
