"""Computes the results of a comparison from the files in its folder."""

import platform
import time
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from datetime import datetime
from pathlib import Path
from typing import Any

import keras_attnvariants
from keras_attnvariants.data import tasks
from keras_attnvariants.data.tasks import monitors
from keras_attnvariants.evaluation.baselines import BASELINES
from keras_attnvariants.experiments.comparison_folder import ComparisonFolder
from keras_attnvariants.experiments.comparison_folder import Run
from keras_attnvariants.experiments.result_parts import AttentionLayer
from keras_attnvariants.experiments.result_parts import SampleSentence
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.experiments.results import CurvePoint
from keras_attnvariants.experiments.results import Difference
from keras_attnvariants.experiments.results import Origin
from keras_attnvariants.experiments.results import PointResult
from keras_attnvariants.experiments.results import ScoreSummary
from keras_attnvariants.experiments.results import SystemResult
from keras_attnvariants.experiments.results import TestSet
from keras_attnvariants.experiments.scores import score_test_set
from keras_attnvariants.experiments.settings import ScoreSettings
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.experiments.settings import TestSettings
from keras_attnvariants.experiments.system_analysis import Examination
from keras_attnvariants.experiments.system_analysis import evenly_spaced
from keras_attnvariants.experiments.system_analysis import read_examination
from keras_attnvariants.presets import get
from keras_attnvariants.training.progress import read_log
from keras_attnvariants.training.run_models import LOG
from keras_attnvariants.training.training_config import content_sha256
from keras_attnvariants.utils.machine import hardware
from keras_attnvariants.utils.machine import versions
from keras_attnvariants.utils.metrics import label

# Packages that results depend on.
PACKAGES = ("keras", "tensorflow", "sacrebleu", "scipy", "numpy")


def summarize(folder: ComparisonFolder, command: str = "") -> ComparisonResult:
    """The results of all runs in the folder of a comparison, scored and tested."""
    s = folder.settings
    runs = folder.runs()
    done = [run for run in runs if run.has_translated(*s.test_sets)]
    scored = [score_translations(folder, done, t, s.scores) for t in s.test_sets]
    found = [(system, read_examination(folder, system)) for system in s.systems]
    order = list(s.analyses.names)
    tables = [table for _, each in found if each for table in each.analyses]
    attention = [layer for _, each in found if each for layer in each.attention]
    return ComparisonResult(
        title=s.title,
        data=s.corpus.data,
        source_language=s.corpus.source,
        target_language=s.corpus.target,
        budget=s.budget.describe(),
        baseline=s.baseline,
        seeds=s.seeds,
        confidence=s.scores.confidence,
        metrics=tuple(label(name) for name in s.scores.metrics),
        test_sets=tuple(
            TestSet(
                name=test.name,
                sentences=len(folder.pairs(test)[0]),
                origin=f"split {test.split} of {Path(test.data or s.corpus.data).name}",
            )
            for test in s.test_sets
        ),
        systems=tuple(describe(folder, *pair) for pair in found),
        untrained=tasks.get(s.corpus.task).baselines,
        runs=tuple(
            replace(record.result, curve=tuple(map(point, read_log(run.path / LOG))))
            for run in done
            if (record := run.record) is not None
        ),
        missing=tuple(run.name for run in runs if run not in done),
        scores=tuple(row for rows, _ in scored for row in rows),
        differences=tuple(row for _, rows in scored for row in rows),
        points=tuple(points(folder, done)),
        analyses=tuple(sorted(tables, key=lambda table: order.index(table.analysis))),
        samples=tuple(samples(folder, done, attention)),
        attention=tuple(attention),
        origin=origin(folder, command),
    )


def points(folder: ComparisonFolder, done: Sequence[Run]) -> Iterator[PointResult]:
    """Scores and differences at points of the budget."""
    s = folder.settings
    first = replace(s.scores, metrics=s.scores.metrics[:1])
    for test in s.points:
        there = [run for run in done if run.has_translated(test)]
        scores, differences = score_translations(folder, there, test, first)
        name, share = test.name.rpartition(" at ")[0], test.share or 1.0
        yield PointResult(name, share, tuple(scores), tuple(differences))


def score_translations(
    folder: ComparisonFolder,
    done: Sequence[Run],
    test: TestSettings,
    settings: ScoreSettings,
) -> tuple[list[ScoreSummary], list[Difference]]:
    """Scores and differences on a test set."""
    texts: dict[str, dict[int, list[str]]] = {}
    for run in done:
        texts.setdefault(run.system.name, {})[run.seed] = run.translations(test)
    sources, references = folder.pairs(test)
    s = folder.settings
    untrained = {
        name: BASELINES[name](sources, [references])
        for name in tasks.get(s.corpus.task).baselines
    }
    return score_test_set(
        test.name, texts, references, s.corpus.target, s.baseline, settings, untrained
    )


def describe(
    folder: ComparisonFolder, system: SystemSettings, found: Examination | None
) -> SystemResult:
    """A system: its size and its speed."""
    preset = get(system.preset)
    return SystemResult(
        name=system.name,
        preset=preset.name,
        parameters=preset.count(folder.vocabulary_size(), **folder.options(system)),
        changes=dict(system.changes),
        sentences_per_second=found.sentences_per_second if found else None,
        output_tokens_per_second=found.output_tokens_per_second if found else None,
        processor=found.processor if found else "",
    )


def point(event: dict[str, Any]) -> CurvePoint:
    """A line of a log."""
    values = event if event["event"] != "averaged" else {}
    return CurvePoint(
        event["step"],
        event["seconds"],
        values.get("loss"),
        values.get("val_loss"),
        next((values[name] for name in monitors()[:-1] if name in values), None),
    )


def samples(
    folder: ComparisonFolder, done: Sequence[Run], attention: Sequence[AttentionLayer]
) -> Iterator[SampleSentence]:
    """The sentences to show, including those with attention weights."""
    s = folder.settings
    for test in [s.shown] if s.shown else s.test_sets:
        sources, references = folder.pairs(test)
        numbers = {layer.number for layer in attention if layer.test_set == test.name}
        if test in (s.test_sets[0], s.shown):
            numbers.update(evenly_spaced(len(sources), s.scores.examples))
        texts: dict[str, list[str]] = {}
        for run in done:
            if run.system.name not in texts and run.has_translated(test):
                texts[run.system.name] = run.translations(test)
        for number in sorted(numbers):
            yield SampleSentence(
                test.name,
                number,
                sources[number],
                references[number],
                {name: lines[number] for name, lines in texts.items()},
            )


def origin(folder: ComparisonFolder, command: str) -> Origin:
    """The origin of the results."""
    s = folder.settings
    digests: dict[str, str] = {
        split: content_sha256(folder.corpus.files(split))
        for split in ("train", "validation")
        if split in folder.corpus.splits
    }
    finished = [test for test in s.translated if test.share is None]
    digests |= {test.name: content_sha256(folder.files(test)) for test in finished}
    return Origin(
        command=command,
        comparison=s.text,
        versions={
            "python": platform.python_version(),
            "keras_attnvariants": keras_attnvariants.__version__,
            **versions(PACKAGES),
        },
        hardware=hardware(),
        corpus=digests,
        date=datetime.fromtimestamp(time.time(), UTC).isoformat(" ", "seconds"),
        settings={
            "precision": folder.precision,
            "at_once": s.run.at_once,
            "threads": s.run.threads,
            "vocabulary_size": folder.vocabulary_size(),
            **vars(s.decoding),
            "samples": s.scores.samples,
        },
    )
