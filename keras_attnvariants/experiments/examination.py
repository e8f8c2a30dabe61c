"""Speed of decoding, analyses and attention weights of one system."""

import hashlib
import json
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from keras_attnvariants import analysis
from keras_attnvariants.analysis.named import COMPARISONS
from keras_attnvariants.analysis.named import SINGLE
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.analysis.tables import grouped
from keras_attnvariants.evaluation.attention_maps import Reading
from keras_attnvariants.evaluation.attention_maps import label
from keras_attnvariants.evaluation.report import measure_speed
from keras_attnvariants.experiments.callbacks import Report
from keras_attnvariants.experiments.findings import FINDINGS
from keras_attnvariants.experiments.findings import Finding
from keras_attnvariants.experiments.insights import AnalysisTable
from keras_attnvariants.experiments.insights import AttentionLayer
from keras_attnvariants.experiments.records import read_record
from keras_attnvariants.experiments.records import write_record
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.experiments.settings import TestSettings
from keras_attnvariants.experiments.work import RunRecord
from keras_attnvariants.experiments.work import Work
from keras_attnvariants.training import load_run
from keras_attnvariants.training.run import clear_full_disk
from keras_attnvariants.utils.files import DamagedFolderError

EXAMINATION = "examination.json"
# Decimals of a weight that is kept.
DECIMALS = 3


@dataclass(frozen=True)
class Examination:
    """What was found about a system, beside its scores.

    Attributes:
        digest: of what decided it.
        sentences_per_second, output_tokens_per_second: of decoding, if measured.
        analyses: tables of its own, and those of all systems if it is the baseline.
        attention: weights on a few sentences.
    """

    digest: str
    sentences_per_second: float | None
    output_tokens_per_second: float | None
    analyses: tuple[AnalysisTable, ...]
    attention: tuple[AttentionLayer, ...]


def read_examination(work: Work, system: SystemSettings) -> Examination | None:
    """What was found about a system; `None` if it was not examined like this."""
    path = work.system_folder(system) / EXAMINATION
    try:
        found = read_record(path, Examination)
    except DamagedFolderError:
        return None
    return found if found.digest == digest(work, system) else None


def is_examined(work: Work, system: SystemSettings) -> bool:
    """Whether all is known that the file asks for."""
    s = work.settings
    asks = s.speed_runs or any(has(work, system, name) for name in s.analyses.names)
    if s.analyses.attention_sentences and system.name in s.analyses.systems:
        asks = True
    return not asks or read_examination(work, system) is not None


def has(work: Work, system: SystemSettings, name: str) -> bool:
    """Whether an analysis is to be made with the model of a system."""
    if name in COMPARISONS:
        return system.name == work.settings.baseline
    return system.name in work.settings.analyses.systems


def digest(work: Work, system: SystemSettings) -> str:
    """What decides an examination, as a digest."""
    s = work.settings
    is_baseline = system.name == s.baseline
    examined = s.systems if is_baseline and compared(work) else (system,)
    records = [first_record(work, other) for other in examined]
    decided_by = (
        s.speed_runs,
        s.speed_sentences,
        s.tokenize,
        s.samples,
        str(s.analyses),
        *([str(s.shown)] if s.shown else []),
        [record and record.translations for record in records],
    )
    return hashlib.sha256(json.dumps(decided_by, default=str).encode()).hexdigest()


def first_record(work: Work, system: SystemSettings) -> RunRecord | None:
    """The record of the first run of a system."""
    return work.record(system, work.settings.seeds[0])


def compared(work: Work) -> list[str]:
    """Names of the analyses that compare systems."""
    return [name for name in work.settings.analyses.names if name in COMPARISONS]


def do_examination(work: Work, system: SystemSettings, report: Report) -> None:
    """Measures the speed of the first run of a system, and looks inside."""
    s, run = work.settings, work.run_folder(system, work.settings.seeds[0])
    report(0.0, "loading")
    examined = Examined(work, system, *load_run(run))
    speed = None
    if s.speed_runs:
        report(0.1, "measuring the speed of decoding")
        sources, _ = work.pairs(s.test_sets[0])
        translate = work.translator(examined.model, examined.tokenizer).translate
        speed = measure_speed(translate, sources[: s.speed_sentences], s.speed_runs)
    tables: list[AnalysisTable] = []
    names = [name for name in s.analyses.names if has(work, system, name)]
    for number, name in enumerate(names):
        report(0.2 + 0.7 * number / len(names), name)
        tables.append(examined.table(name))
    report(0.9, "attention weights")
    found = Examination(
        digest(work, system),
        None if speed is None else speed.sentences_per_second,
        None if speed is None else speed.tokens_per_second,
        tuple(tables),
        tuple(examined.attention()),
    )
    with clear_full_disk(run.parent):
        write_record(work.system_folder(system) / EXAMINATION, found)


@dataclass(frozen=True)
class Examined:
    """A system that is examined, with the model of its first run."""

    work: Work
    system: SystemSettings
    model: Any
    tokenizer: Any

    @cached_property
    def test(self) -> TestSettings:
        """The test set of the analyses."""
        settings = self.work.settings
        wanted = settings.analyses.test_set
        return next(t for t in settings.test_sets if t.name == wanted)

    @property
    def shown(self) -> TestSettings:
        """Where sentences come from whose texts are kept."""
        return self.work.settings.shown or self.test

    def table(self, name: str) -> AnalysisTable:
        """The table of an analysis; without rows if the model has nothing for it."""
        work, finding = self.work, FINDINGS.get(name, Finding())
        note, table = "", None
        try:
            table = (
                self._comparison(name) if name in COMPARISONS else self._single(name)
            )
        except ValueError as error:
            note = " ".join(str(error).split())
        return AnalysisTable(
            analysis=name,
            title="" if table is None else table.title,
            system="" if name in COMPARISONS else self.system.name,
            seed=work.settings.seeds[0],
            test_set=self._data(name),
            columns=() if table is None else table.columns,
            rows=() if table is None else tuple(map(tuple, table.rows)),
            sentences=0 if table is None else table.sentences,
            skipped=0 if table is None else table.skipped,
            note=note,
            **finding._asdict(),
        )

    def _data(self, name: str) -> str:
        """The name of what is analysed."""
        chosen = self.work.settings.analyses
        if name == "heat-maps":
            return self.shown.name
        if name == "alignment-errors":
            return Path(chosen.alignments or "").name
        if name in ("contrastive", "agreement"):
            return Path(chosen.contrastive or "").name
        return chosen.test_set

    def _single(self, name: str) -> Table:
        """A table of this system alone."""
        s = self.work.settings
        data: Iterable[Any]
        if name == "alignment-errors":
            options = (str(s.analyses.alignments), s.source, s.target)
            data = analysis.read_alignments(*options)
        elif name in ("contrastive", "agreement"):
            data = analysis.read_contrastive(str(s.analyses.contrastive))
        else:
            test = self.shown if name == "heat-maps" else self.test
            data = zip(*self.work.pairs(test), strict=True)
        chosen = islice(data, s.analyses.sentences)
        return SINGLE[name](self.model, self.tokenizer, chosen)

    def _comparison(self, name: str) -> Table:
        """A table of all systems that have translated the test set."""
        s, seed = self.work.settings, self.work.settings.seeds[0]
        sources, references = self.work.pairs(self.test)
        count = s.analyses.sentences
        translate: dict[str, Callable[[list[str]], list[str]]] = {}
        others = [system for system in s.systems if system != self.system]
        for system in (self.system, *others):
            if first_record(self.work, system) is not None:
                texts = self.work.translations(self.test, system, seed)
                translate[system.name] = translator_of(sources, texts)
        pairs = islice(zip(sources, references, strict=True), count)
        options: dict[str, Any] = {"samples": s.samples, "tokenize": s.tokenize}
        if name == "bleu-by-length":
            return analysis.bleu_by_length(translate, pairs, **options)
        return analysis.bleu_by_off_diagonality(
            self.model, self.tokenizer, translate, pairs, **options
        )

    def attention(self) -> Iterator[AttentionLayer]:
        """The weights on a few sentences, if the model has some."""
        settings = self.work.settings.analyses
        is_wanted = self.system.name in settings.systems
        if not is_wanted or not hasattr(self.model, "attention_scores"):
            return
        pairs = list(zip(*self.work.pairs(self.shown), strict=True))
        for number in spread(len(pairs), settings.attention_sentences):
            yield from self._attention(number, *pairs[number])

    def _attention(
        self, number: int, source: str, target: str
    ) -> Iterator[AttentionLayer]:
        where = self.system.name, self.shown.name, number
        try:
            reading = Reading(self.model, self.tokenizer, source, target)
        except ValueError:
            return  # it is empty, or longer than the model takes
        for layer in reading.weights():
            queries, keys = map(tuple, reading.axes[layer.place])
            heads = rounded(layer.weights)
            yield AttentionLayer(*where, layer.place, layer.depth, queries, keys, heads)
        try:
            maps = analysis.quadrant_maps(self.model, self.tokenizer, source, target)
        except ValueError:
            return  # no phrases
        quadrants = grouped(maps.rows, "place", "layer", "query", "key")
        for (place, depth, query, key), cells in quadrants.items():
            by_row = grouped(cells, "row")
            queries = tuple(readable(row[0].row_text) for row in by_row.values())
            first = next(iter(by_row.values()))
            keys = tuple(readable(cell.column_text) for cell in first)
            matrix = [[cell.weight for cell in row] for row in by_row.values()]
            heads = rounded([matrix])
            yield AttentionLayer(
                *where, place, depth, queries, keys, heads, query, key, True
            )


def translator_of(
    sources: list[str], translations: list[str]
) -> Callable[[list[str]], list[str]]:
    """What translates the sources as it was done before."""
    known = dict(zip(sources, translations, strict=True))
    return lambda texts: [known[text] for text in texts]


def spread(total: int, count: int) -> list[int]:
    """So many numbers below `total`, evenly, from the first."""
    count = min(total, count)
    return [i * total // count for i in range(count)]


def rounded(heads: Iterable[Any]) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Weights `[H, T, S]` as a file has them."""
    return tuple(
        tuple(tuple(round(float(w), DECIMALS) for w in row) for row in head)
        for head in heads
    )


def readable(text: str) -> str:
    """A gram of pieces for people to read."""
    return " ".join(label(piece) for piece in text.split(" "))
