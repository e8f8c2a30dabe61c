"""The results of a comparison, from what its folder holds."""

import platform
import time
from collections.abc import Iterator
from datetime import UTC
from datetime import datetime
from pathlib import Path
from typing import Any

import keras_attnvariants
from keras_attnvariants.experiments.comparison_folder import ComparisonFolder
from keras_attnvariants.experiments.published_figures import published
from keras_attnvariants.experiments.result_tables import AttentionLayer
from keras_attnvariants.experiments.result_tables import SampleSentence
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.experiments.results import CurvePoint
from keras_attnvariants.experiments.results import Difference
from keras_attnvariants.experiments.results import Origin
from keras_attnvariants.experiments.results import RunResult
from keras_attnvariants.experiments.results import ScoreSummary
from keras_attnvariants.experiments.results import SystemResult
from keras_attnvariants.experiments.results import TestSet
from keras_attnvariants.experiments.scores import make_metric
from keras_attnvariants.experiments.scores import score_test_set
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.experiments.system_analysis import read_examination
from keras_attnvariants.experiments.system_analysis import spread
from keras_attnvariants.presets import get
from keras_attnvariants.training.folder import LOG
from keras_attnvariants.training.runs import content_sha256
from keras_attnvariants.training.runs import read_log
from keras_attnvariants.utils.machine import hardware
from keras_attnvariants.utils.machine import versions

# What results depend on.
PACKAGES = ("keras", "tensorflow", "sacrebleu", "scipy", "numpy")


def summarize(folder: ComparisonFolder, command: str = "") -> ComparisonResult:
    """Everything that the folder of a comparison holds, scored and tested."""
    s = folder.settings
    done = [
        (system, seed)
        for system in s.systems
        for seed in s.seeds
        if folder.can_be_scored(system, seed)
    ]
    missing = [
        f"{system.name} {seed}"
        for system in s.systems
        for seed in s.seeds
        if (system, seed) not in done
    ]
    scores, differences = score(folder, done)
    found = [read_examination(folder, system) for system in s.systems]
    order = list(s.analyses.names)
    tables = [table for each in found if each for table in each.analyses]
    attention = [layer for each in found if each for layer in each.attention]
    return ComparisonResult(
        title=s.title,
        data=s.data,
        source_language=s.source,
        target_language=s.target,
        budget=s.budget.describe(),
        baseline=s.baseline,
        seeds=s.seeds,
        confidence=s.confidence,
        metrics=tuple(metric_label(name) for name in s.metrics),
        test_sets=tuple(test_sets(folder)),
        systems=tuple(describe(folder, system) for system in s.systems),
        runs=tuple(read_run(folder, system, seed) for system, seed in done),
        missing=tuple(missing),
        scores=tuple(scores),
        differences=tuple(differences),
        analyses=tuple(sorted(tables, key=lambda table: order.index(table.analysis))),
        samples=tuple(samples(folder, done, attention)),
        attention=tuple(attention),
        origin=origin(folder, command),
    )


def score(
    folder: ComparisonFolder, done: list[tuple[SystemSettings, int]]
) -> tuple[list[ScoreSummary], list[Difference]]:
    """Scores and differences on all test sets."""
    s = folder.settings
    scores: list[ScoreSummary] = []
    differences: list[Difference] = []
    for test in s.test_sets:
        texts: dict[str, dict[int, list[str]]] = {}
        for system, seed in done:
            translations = folder.translations(test, system, seed)
            texts.setdefault(system.name, {})[seed] = translations
        _, references = folder.pairs(test)
        found = score_test_set(
            test.name,
            texts,
            references,
            s.baseline,
            metrics=s.metrics,
            tokenize=s.tokenize,
            samples=s.samples,
            confidence=s.confidence,
        )
        scores += found[0]
        differences += found[1]
    return scores, differences


def metric_label(name: str) -> str:
    """The name that sacrebleu has for a metric, such as `"chrF2"`."""
    return make_metric(name, "13a").corpus_score(["a"], [["a"]]).name


def test_sets(folder: ComparisonFolder) -> Iterator[TestSet]:
    """The test sets, with their sizes."""
    for test in folder.settings.test_sets:
        data = test.data or folder.settings.data
        count = len(folder.pairs(test)[0])
        yield TestSet(test.name, count, f"split {test.split} of {Path(data).name}")


test_sets.__test__ = False  # type: ignore[attr-defined]


def describe(folder: ComparisonFolder, system: SystemSettings) -> SystemResult:
    """A system: its size, its speed, and its published figures."""
    preset = get(system.preset)
    figures = published(preset, system.published)
    examination = read_examination(folder, system)
    speed: dict[str, float | None] = {}
    if examination is not None:
        speed = {
            "sentences_per_second": examination.sentences_per_second,
            "output_tokens_per_second": examination.output_tokens_per_second,
        }
    return SystemResult(
        name=system.name,
        preset=preset.name,
        parameters=preset.count(folder.vocabulary_size(), **system.options),
        changes=dict(system.changes),
        published_preset=figures.preset,
        published=dict(figures.figures),
        published_differences=dict(figures.differences),
        **speed,
    )


def read_run(folder: ComparisonFolder, system: SystemSettings, seed: int) -> RunResult:
    """A run that has ended, with its curve."""
    record = folder.record(system, seed)
    if record is None:
        raise ValueError(f"{system.name} {seed} has not ended.")
    log = read_log(folder.run_folder(system, seed) / LOG)
    fields = {**vars(record.result), "curve": tuple(map(point, log))}
    return RunResult(**fields)


def point(event: dict[str, Any]) -> CurvePoint:
    """A line of a log."""
    is_update = event["event"] != "averaged"
    return CurvePoint(
        event["step"],
        event["seconds"],
        event.get("loss") if is_update else None,
        event.get("val_loss") if is_update else None,
        event.get("val_bleu") if is_update else None,
    )


def samples(
    folder: ComparisonFolder,
    done: list[tuple[SystemSettings, int]],
    attention: list[AttentionLayer],
) -> Iterator[SampleSentence]:
    """Sentences that are shown, those whose weights are kept among them."""
    s = folder.settings
    for test in [s.shown] if s.shown else s.test_sets:
        sources, references = folder.pairs(test)
        numbers = {layer.number for layer in attention if layer.test_set == test.name}
        if test in (s.test_sets[0], s.shown):
            numbers.update(spread(len(sources), s.examples))
        if not numbers:
            continue
        texts: dict[str, list[str]] = {}
        for system, seed in done:
            if system.name not in texts and folder.has_translated(test, system, seed):
                texts[system.name] = folder.translations(test, system, seed)
        for number in sorted(numbers):
            yield SampleSentence(
                test.name,
                number,
                sources[number],
                references[number],
                {name: lines[number] for name, lines in texts.items()},
            )


def origin(folder: ComparisonFolder, command: str) -> Origin:
    """How the results were made."""
    s = folder.settings
    digests: dict[str, str] = {
        split: content_sha256(folder.corpus.files(split))
        for split in ("train", "validation")
        if split in folder.corpus.splits
    }
    digests |= {test.name: content_sha256(folder.files(test)) for test in s.translated}
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
            "at_once": s.at_once,
            "threads": s.threads,
            "vocabulary_size": folder.vocabulary_size(),
            "beam_size": s.beam_size,
            "length_penalty": s.length_penalty,
            "samples": s.samples,
        },
    )
