"""The results of a comparison, from which its tables and its page are made."""

import os
import statistics
from collections import Counter
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from rich.jupyter import JupyterMixin
from rich.table import Table

from keras_attnvariants.experiments.result_parts import COSTS
from keras_attnvariants.experiments.result_parts import AnalysisTable
from keras_attnvariants.experiments.result_parts import AttentionLayer
from keras_attnvariants.experiments.result_parts import SampleSentence
from keras_attnvariants.utils.checks import check_known
from keras_attnvariants.utils.records import read_record
from keras_attnvariants.utils.records import write_record


@dataclass(frozen=True)
class TestSet:
    """A test set.

    Attributes:
        name: its name in all tables.
        sentences: number of sentences.
        origin: the split and, if it is not that of the training data, the corpus.
    """

    __test__ = False  # pytest would take it for tests

    name: str
    sentences: int
    origin: str = ""


@dataclass(frozen=True)
class SystemResult:
    """A system, trained once with each seed.

    Attributes:
        name: its name in all tables.
        preset: its preset.
        changes: options of the preset and of the training that only it has.
        parameters: number of parameters.
        sentences_per_second: speed of decoding; `None` until it was measured.
        output_tokens_per_second: the speed in words of the translations.
        processor: processor on which the speed was measured.
    """

    name: str
    preset: str
    parameters: int
    changes: dict[str, Any] = field(default_factory=dict)
    sentences_per_second: float | None = None
    output_tokens_per_second: float | None = None
    processor: str = ""


@dataclass(frozen=True)
class CurvePoint:
    """A line of the log of a run; missing values are `None`.

    Attributes:
        update: number of updates so far.
        seconds: since training began, without interruptions.
        loss: training loss, with label smoothing.
        validation_loss, validation_score: values at the end of a period; the score is
            the first metric of the task.
    """

    update: int
    seconds: float
    loss: float | None = None
    validation_loss: float | None = None
    validation_score: float | None = None


@dataclass(frozen=True)
class RunResult:
    """A finished run.

    Attributes:
        system: name of the system.
        seed: seed of its weights, dropout and batches.
        updates: number of updates.
        seconds: elapsed time of training with validations.
        cpu_seconds: processor time of training with validations, over all processors.
        tokens_per_second: target tokens in training, median over the log.
        memory_mib: largest resident memory of its process.
        validation_loss: loss of the model that translated; `None` if not validated.
        curve: its log.
        processor: processor at the end of the run.
    """

    system: str
    seed: int
    updates: int
    seconds: float
    cpu_seconds: float
    tokens_per_second: float
    memory_mib: float
    validation_loss: float | None
    curve: tuple[CurvePoint, ...] = ()
    processor: str = ""


@dataclass(frozen=True)
class ScoreSummary:
    """A system under one metric on one test set.

    Attributes:
        system, test_set: their names.
        metric: `"BLEU"`, `"chrF2"`, `"TER"` (lower is better).
        seeds: seeds of the runs.
        values: the score of each seed.
        mean: mean of the values.
        deviation: their standard deviation; `None` for one.
        low, high: interval of the mean by Student's t; `None` for one value.
        signature: sacrebleu's signature.
    """

    system: str
    test_set: str
    metric: str
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    mean: float
    deviation: float | None
    low: float | None
    high: float | None
    signature: str


@dataclass(frozen=True)
class Difference:
    """A system minus the baseline, under one metric on one test set.

    P-values over sentences also exist with Holm's correction for the number of systems
    (`…_holm`). `None` means that there are too few seeds.

    Attributes:
        system, test_set, metric: their names.
        difference: difference of the means over seeds.
        low, high: its interval over seeds by Dunnett's test, for all systems together.
        bootstrap: p-value of the paired bootstrap over sentences.
        randomization: p-value of approximate randomisation over sentences.
        sentence_low, sentence_high: interval of the difference over sentences
            (bootstrap, all seeds at once).
        dunnett, detectable, seeds_needed: see `SeedTests`.
        both_low, both_high: interval over seeds and sentences (hierarchical bootstrap).
    """

    system: str
    test_set: str
    metric: str
    difference: float
    low: float | None
    high: float | None
    bootstrap: float
    bootstrap_holm: float
    randomization: float
    randomization_holm: float
    sentence_low: float
    sentence_high: float
    dunnett: float | None = None
    detectable: float | None = None
    seeds_needed: int | None = None
    both_low: float | None = None
    both_high: float | None = None

    @property
    def interval(self) -> tuple[float, float, str]:
        """The displayed interval, and what it is over.

        With one seed there is only an interval over sentences.
        """
        if self.both_low is None or self.both_high is None:
            return self.sentence_low, self.sentence_high, "sentences"
        return self.both_low, self.both_high, "seeds and sentences"


@dataclass(frozen=True)
class PointResult:
    """The systems at a point of their training, on one test set.

    Attributes:
        test_set: name of the test set, or of the split of the corpus.
        share: share of the budget that was spent, above 0 and at most 1.
        scores, differences: under the first metric.
    """

    test_set: str
    share: float
    scores: tuple[ScoreSummary, ...]
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Origin:
    """The origin of the results.

    Attributes:
        command: command that produces them.
        comparison: the text of the comparison's file.
        versions: versions of the software, by name.
        hardware: properties of the machine, by name.
        corpus: sha256 of files of the corpus, by name of the split.
        date: date of the results.
        settings: number of parallel processes, threads of each, precision, ….
    """

    command: str
    comparison: str
    versions: dict[str, str]
    hardware: dict[str, str]
    corpus: dict[str, str]
    date: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class ComparisonResult(JupyterMixin):
    """The results of a comparison.

    Attributes:
        title: title of the comparison.
        data: name of the training data.
        source_language, target_language: codes.
        budget: the budget of each run, in words.
        baseline: name of the system that the others are compared with.
        seeds: seeds of the runs of each system.
        confidence: confidence of all intervals.
        metrics: metrics in the order of the file; the first decides "better" and
            "worse".
        test_sets, systems: test sets and systems in the order of the file.
        untrained: names of texts that are scored like systems but need no model, such
            as the first sentence of each document. They are in no test.
        runs: finished runs.
        missing: systems and seeds of unfinished runs, such as `"base 3"`.
        scores: scores for each test set, metric and system with a run.
        differences: differences for the same, except for the baseline.
        points: scores and differences at points of the budget.
        analyses: analyses in the order of the file.
        samples: sentences with translations.
        attention: attention weights on some samples.
        origin: how the results were made.
    """

    title: str
    data: str
    source_language: str
    target_language: str
    budget: str
    baseline: str
    seeds: tuple[int, ...]
    confidence: float
    metrics: tuple[str, ...]
    test_sets: tuple[TestSet, ...]
    systems: tuple[SystemResult, ...]
    runs: tuple[RunResult, ...]
    missing: tuple[str, ...]
    scores: tuple[ScoreSummary, ...]
    differences: tuple[Difference, ...]
    analyses: tuple[AnalysisTable, ...]
    samples: tuple[SampleSentence, ...]
    attention: tuple[AttentionLayer, ...]
    origin: Origin
    points: tuple[PointResult, ...] = ()
    untrained: tuple[str, ...] = ()

    def __rich__(self) -> Table:
        # Imported here because it imports this module.
        from keras_attnvariants.experiments.result_files import score_table

        return score_table(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes everything as JSON.

        Raises:
            OSError: the file cannot be written.
        """
        write_record(Path(path).resolve(), self)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "ComparisonResult":
        """Reads a file that `write` wrote.

        Raises:
            DamagedFolderError: the file is missing or damaged.
        """
        return read_record(Path(path).resolve(), cls)

    def system(self, name: str) -> SystemResult:
        """The system of this name.

        Raises:
            ValueError: there is none; the message has the nearest name.
        """
        systems = {system.name: system for system in self.systems}
        check_known("The comparison", name, systems)
        return systems[name]

    def score(self, system: str, test_set: str, metric: str) -> ScoreSummary | None:
        """A score; `None` if there is none yet."""
        return _find(self.scores, system, test_set, metric)

    def difference(self, system: str, test_set: str, metric: str) -> Difference | None:
        """A difference from the baseline; `None` if there is none."""
        return _find(self.differences, system, test_set, metric)

    @property
    def processors(self) -> list[str]:
        """The known processors on which runs ended, most frequent first."""
        counts = Counter(run.processor for run in self.runs if run.processor)
        return [processor for processor, _ in counts.most_common()]

    def costs(self, system: str) -> dict[str, float | None]:
        """The costs of a system, by the names of `COSTS`: means over its runs.

        Values known to be from another processor than most runs are left out. Values
        that were not measured are `None`.
        """
        kinds = ["", *self.processors[:1]]
        runs = [r for r in self.runs if r.system == system and r.processor in kinds]
        own = self.system(system)
        costs = dict.fromkeys(COSTS) | {"parameters": own.parameters}
        if own.processor in kinds:
            costs["sentences_per_second"] = own.sentences_per_second
        for name in COSTS:
            if values := [getattr(run, name) for run in runs if hasattr(run, name)]:
                costs[name] = statistics.fmean(values)
        return costs


def _find(rows: Any, *wanted: str) -> Any:
    return next((r for r in rows if (r.system, r.test_set, r.metric) == wanted), None)
