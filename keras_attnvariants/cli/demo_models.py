"""Models that a demo shows: texts in, aligned translations out."""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.cli.models import load
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.evaluation.alignment_html import Hypothesis
from keras_attnvariants.models import SearchSettings

# Source tokens of the programs that are compiled; a longer sentence is cut.
LENGTHS = (16, 32, 64, 128, 256)


class Reading(NamedTuple):
    """A sentence, its translations and how long they took.

    Attributes:
        source: the pieces of the sentence that the model read.
        hypotheses: best first; none for an empty sentence.
        seconds: for translating it, once the program for its length is compiled.
        is_cut: whether the model cannot read the whole sentence.
    """

    source: list[str]
    hypotheses: list[Hypothesis]
    seconds: float
    is_cut: bool


class DemoModel:
    """A trained model that shows what it attends to.

    Args:
        folder: of a run or of a model.
        beam_size: of the search; `None` for that of the model.
        n_best: translations of a sentence, at most the beam size.

    Raises:
        OSError: there is no model.
        ValueError: a file of it is damaged.
    """

    def __init__(self, folder: Path, beam_size: int | None, n_best: int) -> None:
        self.model, self.tokenizer = load(folder)
        settings = SearchSettings.of(self.model, beam_size=beam_size)
        self.pieces = self.tokenizer.pieces
        self.lengths = sorted({min(n, self.model.max_length) for n in LENGTHS})
        self._compiled: set[int] = set()
        self._searches = {
            length: backend.jit(
                lambda ids: beam_search(
                    self.model,
                    ids,
                    beam_size=settings.beam_size,
                    n_best=min(n_best, settings.beam_size),
                    return_alignments=True,
                ),
                xla=False,
            )
            for length in self.lengths
        }

    def read(self, text: str) -> Reading:
        """Translates a sentence."""
        [all_ids] = self.tokenizer.encode([text])
        ids = all_ids[: self.lengths[-1]]
        source = self.tokenizer.split([text])[0][: len(ids)]
        if not ids:
            return Reading(source, [], 0.0, False)
        length = next(n for n in self.lengths if n >= len(ids))
        row = np.full((1, length), self.tokenizer.pad_id, "int32")
        row[0, : len(ids)] = ids
        search = self._searches[length]
        if length not in self._compiled:
            search(ops.convert_to_tensor(row))
            self._compiled.add(length)
        start = time.perf_counter()
        found = search(ops.convert_to_tensor(row))
        tokens, scores, lengths, weights = (
            ops.convert_to_numpy(values)[0]
            for values in (found.ids, found.scores, found.lengths, found.alignments)
        )
        seconds = time.perf_counter() - start
        hypotheses = [
            Hypothesis(
                [self.pieces[i] for i in tokens[rank, : end - 1]],
                float(scores[rank]),
                weights[rank, : end - 1, : len(ids)],
            )
            for rank, end in enumerate(lengths)
            if end > 0
        ]
        return Reading(source, hypotheses, seconds, len(ids) < len(all_ids))
