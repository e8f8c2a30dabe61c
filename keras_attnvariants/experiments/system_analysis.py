"""Speed of decoding, analyses and attention weights of one system."""

import hashlib
import json
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from keras_attnvariants import analysis
from keras_attnvariants.analysis import ANALYSES
from keras_attnvariants.analysis import COMPARISONS
from keras_attnvariants.analysis import Table
from keras_attnvariants.analysis.quadrants import maps_of
from keras_attnvariants.evaluation.attention_maps import AttentionExample
from keras_attnvariants.evaluation.report import Translate
from keras_attnvariants.evaluation.report import measure_speed
from keras_attnvariants.experiments.comparison_folder import EXAMINATION
from keras_attnvariants.experiments.comparison_folder import ComparisonFolder
from keras_attnvariants.experiments.comparison_folder import Run
from keras_attnvariants.experiments.result_parts import AnalysisTable
from keras_attnvariants.experiments.result_parts import AttentionLayer
from keras_attnvariants.experiments.run_records import keep
from keras_attnvariants.experiments.settings import ComparisonSettings
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.experiments.settings import TestSettings
from keras_attnvariants.training import load_run
from keras_attnvariants.training.state import clear_full_disk
from keras_attnvariants.tuning.job_processes import Report
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.machine import kind_of_processor
from keras_attnvariants.utils.records import read_record
from keras_attnvariants.utils.records import write_record

# Decimals of stored weights.
DECIMALS = 3


@dataclass(frozen=True)
class Examination:
    """The results of a system besides its scores.

    Attributes:
        digest: digest of everything that the results depend on.
        sentences_per_second, output_tokens_per_second: speed of decoding, if measured.
        processor: processor on which the speed was measured.
        analyses: its tables, and those of all systems if it is the baseline.
        attention: weights on a few sentences.
    """

    digest: str
    sentences_per_second: float | None
    output_tokens_per_second: float | None
    analyses: tuple[AnalysisTable, ...]
    attention: tuple[AttentionLayer, ...]
    processor: str = ""


def read_examination(
    folder: ComparisonFolder, system: SystemSettings
) -> Examination | None:
    """The results of a system; `None` if its last examination differed from this."""
    path = folder.system_folder(system) / EXAMINATION
    try:
        found = read_record(path, Examination)
    except DamagedFolderError:
        return None
    return found if found.digest == digest(folder, system) else None


def is_examined(folder: ComparisonFolder, system: SystemSettings) -> bool:
    """Whether all results exist that the file asks for."""
    s = folder.settings
    asks = (
        s.speed.runs
        or analyses_of(folder, system)
        or (s.analyses.attention_sentences and system.name in s.analyses.systems)
    )
    return not asks or read_examination(folder, system) is not None


def analyses_of(folder: ComparisonFolder, system: SystemSettings) -> list[str]:
    """Names of the analyses that use the model of a system."""
    analyses, compared = folder.settings.analyses, [folder.settings.baseline]
    return [
        name
        for name in analyses.names
        if system.name in (compared if name in COMPARISONS else analyses.systems)
    ]


def check_data(folder: ComparisonFolder, systems: Sequence[SystemSettings]) -> None:
    """Raises `ValueError` if the data of an analysis that is to be made are missing."""
    names = {
        name
        for system in systems
        if not is_examined(folder, system)
        for name in analyses_of(folder, system)
    }
    for name in sorted(name for name in names if ANALYSES[name].data):
        try:
            next(data_beside_test_sets(folder.settings, name)[1], None)
        except (ValueError, OSError) as error:
            raise ValueError(f"Analysis {name!r}: {error}") from error


def data_beside_test_sets(
    settings: ComparisonSettings, name: str
) -> tuple[str, Iterator[Any]]:
    """The data of an analysis that needs more than a test set, preceded by their name.

    They are read when needed.
    """
    corpus, key = settings.corpus, ANALYSES[name].data
    path = Path(str(getattr(settings.analyses, key)))
    if key == "contrastive":
        return path.name, analysis.read_contrastive(path)
    return path.name, analysis.read_alignments(path, corpus.source, corpus.target)


def digest(folder: ComparisonFolder, system: SystemSettings) -> str:
    """A digest of everything that determines an examination."""
    s = folder.settings
    is_compared = set(COMPARISONS) & set(analyses_of(folder, system))
    examined = s.systems if is_compared else (system,)
    records = [folder.first_run(other).record for other in examined]
    decided_by = (
        s.speed.runs,
        s.speed.sentences,
        s.scores.tokenize,
        s.scores.samples,
        str(s.analyses),
        # Tables with another definition have other columns.
        *(ANALYSES[name].definition for name in analyses_of(folder, system)),
        *([str(s.shown)] if s.shown else []),
        [record and record.translations for record in records],
    )
    return hashlib.sha256(json.dumps(decided_by, default=str).encode()).hexdigest()


def do_examination(
    folder: ComparisonFolder, system: SystemSettings, report: Report
) -> None:
    """Measures the speed of the first run of a system, and analyses its model."""
    folder.import_modules()
    s, run = folder.settings, folder.first_run(system)
    report(0.0, "loading")
    loaded = load_run(run.path)
    speed: tuple[float | None, float | None] = None, None
    if s.speed.runs:
        report(0.1, "measuring the speed of decoding")
        sources = folder.pairs(s.test_sets[0])[0][: s.speed.sentences]
        translate = folder.translator(*loaded).translate
        measured = measure_speed(translate, sources, s.speed.runs)
        speed = measured.sentences_per_second, measured.tokens_per_second
    tables: list[AnalysisTable] = []
    names = analyses_of(folder, system)
    for number, name in enumerate(names):
        report(0.2 + 0.7 * number / len(names), name)
        tables.append(analyse(run, loaded, name))
    report(0.9, "attention weights")
    attention = tuple(attention_layers(run, loaded))
    found = Examination(
        digest(folder, system), *speed, tuple(tables), attention, kind_of_processor()
    )
    with clear_full_disk(run.path.parent):
        write_record(run.path.parent / EXAMINATION, found)
    keep(run)


def analysed(settings: ComparisonSettings) -> TestSettings:
    """The test set of the analyses."""
    wanted = settings.analyses.test_set
    return next(test for test in settings.test_sets if test.name == wanted)


def analyse(run: Run, loaded: tuple[Any, Any], name: str) -> AnalysisTable:
    """The table of an analysis; it has no rows if the model does not support it."""
    s, known, system = run.folder.settings, ANALYSES[name], run.system.name
    test = analysed(s)
    arguments: list[Any] = [*loaded]
    options: dict[str, Any] = {}
    if name in COMPARISONS:
        system = ""
        arguments.append(translators(run, test))
        options = {"samples": s.scores.samples, "tokenize": s.scores.tokenize}
    if known.data:
        data_name, data = data_beside_test_sets(s, name)
    else:
        test = s.shown or test if name == "heat-maps" else test
        data_name, data = test.name, zip(*run.folder.pairs(test), strict=True)
    table, note = Table(known.title, ()), ""
    try:
        data = islice(data, s.analyses.sentences)
        table = known.function(*arguments, data, **options)
    except ValueError as error:
        note = " ".join(str(error).split())
    return AnalysisTable(
        analysis=name,
        title=table.title,
        system=system,
        seed=run.seed,
        test_set=data_name,
        columns=table.columns,
        rows=tuple(map(tuple, table.rows)),
        sentences=table.sentences,
        skipped=table.skipped,
        source=known.source,
        finding=known.finding,
        definition=known.definition,
        note=note,
    )


def attention_layers(run: Run, loaded: tuple[Any, Any]) -> Iterator[AttentionLayer]:
    """The weights of a model on a few sentences, if it has any."""
    s, system = run.folder.settings, run.system.name
    if system not in s.analyses.systems or not hasattr(loaded[0], "attention_scores"):
        return
    shown = s.shown or analysed(s)
    pairs = list(zip(*run.folder.pairs(shown), strict=True))
    for number in evenly_spaced(len(pairs), s.analyses.attention_sentences):
        try:
            example = AttentionExample(*loaded, *pairs[number])
        except ValueError:
            continue  # it is empty, or longer than the model takes
        where = system, shown.name, number
        for place, depth, weights, _ in example.weights():
            queries, keys = map(tuple, example.axes[place])
            heads = np.round(weights, DECIMALS).tolist()
            yield AttentionLayer(*where, place, depth, queries, keys, heads)
        maps = maps_of(example)
        for (place, depth, query, key), *texts, weights in maps.matrices():
            queries, keys = map(tuple, texts)
            heads = np.round([weights], DECIMALS).tolist()
            yield AttentionLayer(
                *where, place, depth, queries, keys, heads, query, key, True
            )


def translators(run: Run, test: TestSettings) -> dict[str, Translate]:
    """The systems that have translated a test set, that of a run first."""
    folder = run.folder
    sources, _ = folder.pairs(test)
    others = [system for system in folder.settings.systems if system != run.system]
    return {
        run.system.name: translator_of(sources, run.translations(test))
        for run in (run, *map(folder.first_run, others))
        if run.record is not None
    }


def translator_of(sources: list[str], translations: list[str]) -> Translate:
    """A function that returns existing translations."""
    known = dict(zip(sources, translations, strict=True))
    return lambda texts: [known[text] for text in texts]


def evenly_spaced(total: int, count: int) -> list[int]:
    """`count` evenly spaced numbers below `total`, starting at 0."""
    count = min(total, count)
    return [i * total // count for i in range(count)]
