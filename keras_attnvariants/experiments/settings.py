"""The settings of a comparison: systems, data, budget and scores."""

import re
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from typing import Any

from keras_attnvariants.evaluation.metrics import METRICS
from keras_attnvariants.tuning.budget import Budget
from keras_attnvariants.utils.checks import check_known
from keras_attnvariants.utils.files import TEMPORARY

# Characters of a name.
LONGEST_NAME = 60


@dataclass(frozen=True)
class SystemSettings:
    """A system of the file.

    Attributes:
        name: as the file has it.
        preset: name of what it is built from.
        options: of the preset, those of all systems included.
        training: fields of `TrainingConfig` and of `TRAINING`, likewise.
        published: name of the preset whose published figures stand beside ours.
        changes: its own options and training, for people to read.
    """

    name: str
    preset: str
    options: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    published: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """Its name in paths."""
        return path_name(self.name)


@dataclass(frozen=True)
class TestSettings:
    """Sentences with references: a split of the corpus, or of another one."""

    __test__ = False  # what pytest would take for tests

    name: str
    split: str
    data: str | None = None

    @property
    def folder(self) -> str:
        """Its name in paths."""
        return path_name(self.name)


@dataclass(frozen=True)
class AnalysisSettings:
    """Which analyses are made, with which systems, and on which sentences.

    Attributes:
        names: analyses, as `kav analyse --analysis` has them.
        systems: names of the systems.
        test_set: name of the test set.
        sentences: only that many, from the start.
        alignments: folder with gold alignments.
        contrastive: folder or file of contrastive pairs.
        attention_sentences: number of sentences whose weights are kept.
    """

    names: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    test_set: str = ""
    sentences: int | None = None
    alignments: str | None = None
    contrastive: str | None = None
    attention_sentences: int = 0


@dataclass(frozen=True)
class ComparisonSettings:
    """A comparison, as its file describes it; see `template.toml` for every key.

    `read_settings` makes one of a file, and checks it.

    Attributes:
        imports: modules that are imported before systems are built.
        shown: what is shown in the place of test sets.
    """

    baseline: str
    seeds: tuple[int, ...]
    data: str
    source: str
    target: str
    test_sets: tuple[TestSettings, ...]
    budget: Budget
    systems: tuple[SystemSettings, ...]
    title: str = "Comparison"
    imports: tuple[str, ...] = ()
    max_invalid: float = 0.01
    vocabulary_size: int | None = None
    subwords: Mapping[str, Any] = field(default_factory=dict)
    beam_size: int | None = None
    length_penalty: float | None = None
    metrics: tuple[str, ...] = tuple(METRICS)
    tokenize: str = "13a"
    samples: int = 1000
    confidence: float = 0.95
    examples: int = 8
    speed_sentences: int = 100
    speed_runs: int = 3
    at_once: int = 1
    threads: int | None = None
    precision: str = "auto"
    analyses: AnalysisSettings = AnalysisSettings()
    shown: TestSettings | None = None
    text: str = ""

    @property
    def translated(self) -> tuple[TestSettings, ...]:
        """Everything that each run translates."""
        return (*self.test_sets, *([self.shown] if self.shown else []))

    def system(self, name: str) -> SystemSettings:
        """The system of this name.

        Raises:
            ValueError: there is none; the message has the nearest.
        """
        named = {system.name: system for system in self.systems}
        check_known("The comparison", name, named)
        return named[name]


def path_name(name: str) -> str:
    """A name as that of a folder."""
    return re.sub(r"[^\w.+-]", "-", name)


def check_names(where: str, names: Sequence[str]) -> None:
    """Raises unless there are names, each can be that of a folder, and none is twice.

    Raises:
        ValueError: says which.
    """
    if not names:
        raise ValueError(f"`{where}` must have at least one table or entry.")
    seen: dict[str, str] = {}
    for name in names:
        wrong = "/" in name or "\\" in name or not name.isprintable()
        if wrong or not name.strip() or name.startswith((".", "-", TEMPORARY)):
            raise ValueError(
                f"`{where}` must have names without slashes and control characters "
                "that begin with a letter or digit: folders are called after them. "
                f"Received: {name!r}"
            )
        if len(name) > LONGEST_NAME:
            raise ValueError(
                f"`{where}` must have names of at most {LONGEST_NAME} characters. "
                f"Received: {name!r}"
            )
        # On some file systems, large and small letters are the same.
        folder = path_name(name).casefold()
        if folder in seen:
            raise ValueError(
                f"`{where}` must have names that differ as names of folders. "
                f"Received: {seen[folder]!r} and {name!r}"
            )
        seen[folder] = name
