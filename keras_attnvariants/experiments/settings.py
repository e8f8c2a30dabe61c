"""The settings of a comparison, read from its TOML file.

A dataclass here is a table of the file, and a field a key; `template.toml` explains
them.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import fields
from dataclasses import replace
from pathlib import Path
from typing import Any

from keras_attnvariants.analysis import ANALYSES
from keras_attnvariants.data import tasks
from keras_attnvariants.evaluation.metrics import check_tokenizer
from keras_attnvariants.experiments.checked_tables import check_keys
from keras_attnvariants.experiments.checked_tables import check_names
from keras_attnvariants.experiments.checked_tables import count
from keras_attnvariants.experiments.checked_tables import each
from keras_attnvariants.experiments.checked_tables import key
from keras_attnvariants.experiments.checked_tables import named
from keras_attnvariants.experiments.checked_tables import one_of
from keras_attnvariants.experiments.checked_tables import optional_table
from keras_attnvariants.experiments.checked_tables import read_table
from keras_attnvariants.experiments.checked_tables import text
from keras_attnvariants.experiments.checked_tables import within
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.tuning.trials import Budget
from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_known
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.checks import check_rate
from keras_attnvariants.utils.checks import check_seed
from keras_attnvariants.utils.checks import check_share
from keras_attnvariants.utils.checks import check_table
from keras_attnvariants.utils.metrics import NAMES

PRECISIONS = ("auto", "float32", "mixed_bfloat16", "mixed_float16")
# Keys of [training] that are not fields of `TrainingConfig`; and fields that are not
# keys, because the budget, the precision and the data have separate tables, and the
# corpus of a comparison has no alignments.
FURTHER_KEYS = {"warmup_steps", "batch_tokens", "score_sentences"}
NOT_KEYS = {"steps", "validate_every", "precision", "data", "alignment_weight"}
TRAINING = FURTHER_KEYS.union(f.name for f in fields(TrainingConfig)) - NOT_KEYS


def read_training(name: str, value: Any) -> dict[str, Any]:
    """Settings of a training; the code that uses the values checks them."""
    check_keys(name, value, TRAINING)
    return dict(value)


def read_budget(name: str, value: Any) -> Budget:
    """The budget of every run."""
    check_keys(name, value, [f.name for f in fields(Budget)])
    try:
        return Budget(**value)
    except ValueError as error:
        raise ValueError(f"[{name}] {error}") from error


def tokenizer(name: str, value: Any) -> str:
    """The name of a tokenizer of sacrebleu."""
    check_tokenizer(text(name, value))
    return str(value)


@dataclass(frozen=True)
class CorpusSettings:
    """The data that all systems are trained on."""

    data: str = key(text)
    source: str = key(text, "")
    target: str = key(text, "")
    task: str = key(one_of(tuple(tasks.TASKS)), tasks.DEFAULT)
    max_invalid: float = key(check_share, 0.01)


@dataclass(frozen=True)
class TestSettings:
    """Sentences with references: a split of the corpus, or of another corpus."""

    __test__ = False  # pytest would take it for tests

    name: str
    split: str = key(text)
    data: str | None = key(text, None)
    # Share of the budget after which a run translates it; `None`: once finished.
    share: float | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SystemSettings:
    """A system of the file.

    Attributes:
        name: its name in the file.
        preset: name of its preset.
        options: options of the preset, including those of all systems.
        training: fields of `TrainingConfig` and of `TRAINING`, likewise.
        continue_from: name, address or folder of the model that its runs begin with;
            `{seed}` in it stands for the seed of a run.
        changes: its own options and training, for people to read.
    """

    name: str
    preset: str = key(text)
    options: Mapping[str, Any] = key(check_table, factory=dict)
    training: Mapping[str, Any] = key(read_training, factory=dict)
    continue_from: str | None = key(text, None)
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VocabularySettings:
    """The vocabulary of all systems."""

    size: int | None = key(check_integer, None)
    model_type: str | None = key(one_of(("unigram", "bpe")), None)
    character_coverage: float | None = key(check_positive, None)

    @property
    def subwords(self) -> dict[str, Any]:
        """The given options, without the size."""
        return {k: v for k, v in vars(self).items() if k != "size" and v is not None}


@dataclass(frozen=True)
class DecodingSettings:
    """The search of all systems; by default, the search of each preset."""

    beam_size: int | None = key(check_integer, None)
    length_penalty: float | None = key(check_finite, None)


@dataclass(frozen=True)
class ScoreSettings:
    """Metrics and tests."""

    metrics: tuple[str, ...] = key(each(one_of(NAMES)), ())
    tokenize: str = key(tokenizer, "13a")
    samples: int = key(check_integer, 1000)
    confidence: float = key(check_rate, 0.95)
    examples: int = key(count, 8)
    points: int = key(count, 0)


@dataclass(frozen=True)
class SpeedSettings:
    """Settings of the measurement of decoding speed."""

    sentences: int = key(check_integer, 100)
    runs: int = key(count, 3)


@dataclass(frozen=True)
class RunSettings:
    """Settings of the processes."""

    at_once: int = key(check_integer, 1)
    threads: int | None = key(check_integer, None)
    precision: str = key(one_of(PRECISIONS), "auto")


@dataclass(frozen=True)
class AnalysisSettings:
    """The analyses to make, their systems and their sentences."""

    names: tuple[str, ...] = key(each(one_of(ANALYSES)), ())
    systems: tuple[str, ...] = key(each(text), ())
    test_set: str = key(text, "")
    sentences: int | None = key(check_integer, None)
    alignments: str | None = key(text, None)
    contrastive: str | None = key(text, None)
    attention_sentences: int = key(count, 0)


@dataclass(frozen=True)
class ComparisonSettings:
    """A comparison; `read_settings` reads and checks one from a file.

    Attributes:
        shown: sentences that are shown instead of test sets.
        text: content of the file.
    """

    baseline: str = key(text)
    seeds: tuple[int, ...] = key(each(check_seed))
    corpus: CorpusSettings = key(within(CorpusSettings))
    budget: Budget = key(read_budget)
    title: str = key(text, "Comparison")
    imports: tuple[str, ...] = key(each(text), (), name="import")
    test_sets: tuple[TestSettings, ...] = key(named(TestSettings, "split"), ())
    vocabulary: VocabularySettings = optional_table(VocabularySettings)
    options: Mapping[str, Any] = key(check_table, factory=dict)
    training: Mapping[str, Any] = key(read_training, factory=dict)
    decoding: DecodingSettings = optional_table(DecodingSettings)
    scores: ScoreSettings = optional_table(ScoreSettings)
    speed: SpeedSettings = optional_table(SpeedSettings)
    run: RunSettings = optional_table(RunSettings)
    analyses: AnalysisSettings = optional_table(AnalysisSettings)
    shown: TestSettings | None = key(within(TestSettings, name="shown"), None)
    systems: tuple[SystemSettings, ...] = key(named(SystemSettings), ())
    text: str = ""

    @property
    def translated(self) -> tuple[TestSettings, ...]:
        """Everything that each run translates."""
        shown = [self.shown] if self.shown else []
        return (*self.test_sets, *shown, *self.points)

    @property
    def points(self) -> tuple[TestSettings, ...]:
        """Validation and first test set at each point of the budget."""
        parts = self.scores.points
        tests = (TestSettings("validation", "validation"), self.test_sets[0])
        return tuple(
            replace(test, name=f"{name} at {part} of {parts}", share=part / parts)
            for name, test in {test.name: test for test in tests}.items()
            for part in range(1, parts + 1)
        )

    def system(self, name: str) -> SystemSettings:
        """The system of this name.

        Raises:
            ValueError: there is none; the message has the nearest name.
        """
        systems = {system.name: system for system in self.systems}
        check_known("The comparison", name, systems)
        return systems[name]


def read_settings(path: Path) -> ComparisonSettings:
    """The comparison that a file describes.

    Raises:
        OSError: the file cannot be read.
        ValueError: something in it is wrong; the message names the file and the key.
    """
    data = path.read_bytes()
    try:
        content = data.decode()
        values = tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from error
    try:
        return parse(content, values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse(content: str, values: Mapping[str, Any]) -> ComparisonSettings:
    """The comparison that the tables in a file describe.

    Raises:
        ValueError: something in it is wrong.
    """
    top: ComparisonSettings = read_table(ComparisonSettings, "", values, text=content)
    names = [system.name for system in top.systems]
    check_names("systems", names)
    check_known("`baseline`", top.baseline, names)
    tests = [test.name for test in top.test_sets]
    check_names("test_sets", tests and tests + ["shown"] * bool(top.shown))
    systems = tuple(
        replace(
            system,
            options={**top.options, **system.options},
            training={**top.training, **system.training},
            changes={**system.options, **system.training},
        )
        for system in top.systems
    )
    if (points := top.scores.points) and (
        top.budget.minutes is not None or top.budget.validations % points
    ):
        raise ValueError(
            "`budget.validations` must be a multiple of `scores.points`, and the "
            f"budget not in minutes. Received: {top.budget.validations}, {points}"
        )
    analyses = replace(
        top.analyses,
        systems=top.analyses.systems or tuple(names),
        test_set=top.analyses.test_set or tests[0],
    )
    for system in analyses.systems:
        check_known("`analyses.systems`", system, names)
    check_known("`analyses.test_set`", analyses.test_set, tests)
    for name in analyses.names:
        if (needed := ANALYSES[name].data) and getattr(analyses, needed) is None:
            raise ValueError(f"`analyses.{needed}` is missing: {name!r} needs it.")
    task = tasks.get(top.corpus.task)
    for side in ("source", "target"):
        if task.languages is None and not getattr(top.corpus, side):
            raise ValueError(f"`corpus.{side}` is missing.")
    source, target = task.sides(top.corpus.source, top.corpus.target)
    return replace(
        top,
        corpus=replace(top.corpus, source=source, target=target),
        scores=replace(top.scores, metrics=top.scores.metrics or task.metrics),
        systems=systems,
        analyses=analyses,
    )
