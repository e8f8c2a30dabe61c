"""Token files that many processes write, the same as one process does."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from keras_attnvariants.beam import engine
from keras_attnvariants.beam.engine import Part
from keras_attnvariants.beam.engine import join
from keras_attnvariants.beam.engine import parts_of
from keras_attnvariants.data import Corpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data.pipeline import LINES_PER_BLOCK
from keras_attnvariants.data.pipeline import TokenizedCorpus
from keras_attnvariants.data.pipeline import write_rows
from keras_attnvariants.data.splits import ParallelFiles
from keras_attnvariants.utils.files import TEMPORARY


class BeamTokenizedCorpus(TokenizedCorpus):
    """A `TokenizedCorpus` whose large files Beam tokenises, a part at a time.

    Args:
        corpus, tokenizer: as in `TokenizedCorpus`.
        options: options of Beam.
        workers: processes on this machine, if the options name no runner.
    """

    def __init__(
        self,
        corpus: Corpus,
        tokenizer: Tokenizer,
        options: Sequence[str],
        workers: int,
    ) -> None:
        super().__init__(corpus, tokenizer)
        self._options, self._workers = options, workers

    def write_tokens(self, files: ParallelFiles, into: Path) -> None:
        """Writes the token files of a split, in this process if they are small."""
        parts = {
            side: parts_of(file, into / side)
            for side, file in zip(("source", "target"), files, strict=True)
        }
        if all(len(of_side) <= 1 for of_side in parts.values()):
            super().write_tokens(files, into)
            return
        todo = [tuple(part) for of_side in parts.values() for part in of_side]
        with engine.pipeline(self._options, self._workers) as steps:
            _put_together(steps, todo, self.tokenizer.model_bytes)
        for side, of_side in parts.items():
            outputs = [Path(part.output) for part in of_side]
            join([path.with_suffix(".ids") for path in outputs], into / f"{side}.ids")
            join_offsets(
                [path.with_suffix(".offsets") for path in outputs],
                into / f"{side}.offsets",
            )


def _put_together(steps: Any, parts: Sequence[Any], model: bytes) -> None:
    """The steps from parts of files to their tokens."""
    import apache_beam as beam

    (
        steps
        | "Parts" >> beam.Create(parts)
        | "Tokenise" >> beam.Map(_tokenize_and_count, model)
    )


def _tokenize_and_count(part: tuple[Any, ...], model: bytes) -> None:
    """Tokenises a part in a pipeline, which counts its lines."""
    engine.count("prepare", "lines tokenised", tokenize_part(Part(*part), model))


def tokenize_part(part: Part, model: bytes) -> int:
    """Writes the token files of a part and returns how many lines it has."""
    tokenizer = Tokenizer(model).tf_tokenizer()
    lines = part.lines(drop_mark=False)
    output = Path(part.output)
    # Another worker may have begun the same part.
    draft = output.with_name(f"{TEMPORARY}{output.name}-{uuid.uuid4().hex[:8]}")
    write_rows(map(tokenizer.tokenize, _blocks(lines)), draft)
    for ending in (".ids", ".offsets"):
        draft.with_suffix(ending).rename(output.with_suffix(ending))
    return output.with_suffix(".offsets").stat().st_size // 8 - 1


def join_offsets(files: Sequence[Path], whole: Path) -> None:
    """Writes where each line begins from the same of parts, and removes these."""
    end = 0
    with whole.open("wb") as output:
        np.zeros(1, np.int64).tofile(output)
        for file in files:
            ends = end + np.fromfile(file, np.int64)
            ends[1:].tofile(output)
            end = int(ends[-1])
            file.unlink()


def _blocks(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Lists of as many lines as one process takes at a time."""
    while block := list(islice(lines, LINES_PER_BLOCK)):
        yield block
