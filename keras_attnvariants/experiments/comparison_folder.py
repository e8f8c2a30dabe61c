"""The folder of a comparison: its data, its runs, and what decides each of them."""

import hashlib
import json
from dataclasses import dataclass
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

from keras_attnvariants.data import Corpus
from keras_attnvariants.data import load_corpus
from keras_attnvariants.decoding import Translator
from keras_attnvariants.experiments.results import RunResult
from keras_attnvariants.experiments.settings import ComparisonSettings
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.experiments.settings import TestSettings
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.presets import get
from keras_attnvariants.training.folder import LOG
from keras_attnvariants.training.runs import SUBWORDS
from keras_attnvariants.training.runs import better_model
from keras_attnvariants.training.runs import content_sha256
from keras_attnvariants.training.runs import describe_data
from keras_attnvariants.utils.dataclass_json import read_record
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.importing import import_named
from keras_attnvariants.utils.lines import split_lines

RECORD = "record.json"
RUNS = "runs"
TRANSLATIONS = "translations"


@dataclass(frozen=True)
class RunRecord:
    """A run whose training has ended.

    Attributes:
        result: how it went; its curve is in the log.
        translations: a digest of what decided each translation, by name of the test
            set.
    """

    result: RunResult
    translations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ComparisonFolder:
    """A comparison in its folder; can be pickled for other processes.

    Attributes:
        settings: of the comparison.
        path: of the folder.
        precision: dtype policy of all models.
    """

    settings: ComparisonSettings
    path: Path
    precision: str

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus of the training data."""
        return self.load(self.settings.data)

    def import_modules(self) -> None:
        """Imports the modules that the file names, in this process.

        Raises:
            ValueError: one of them cannot be imported.
        """
        for module in self.settings.imports:
            import_named("import", module)

    def load(self, data: str) -> Corpus:
        """A corpus with the languages of the comparison."""
        s = self.settings
        return load_corpus(data, s.source, s.target, max_invalid=s.max_invalid)

    def pairs(self, test: TestSettings) -> tuple[list[str], list[str]]:
        """Sources and references of a test set."""
        corpus = self.corpus if test.data is None else self.load(test.data)
        return corpus.read_lines(test.split)

    def vocabulary_size(self) -> int:
        """Number of tokens of the vocabulary of all systems.

        Raises:
            ValueError: presets have different ones, and the file gives none.
        """
        if self.settings.vocabulary_size is not None:
            return self.settings.vocabulary_size
        sizes = {
            system.name: get(system.preset).options["vocabulary_size"]
            for system in self.settings.systems
        }
        if len(set(sizes.values())) == 1:
            return next(iter(sizes.values()))
        raise ValueError(
            "`vocabulary.size` is missing, and the presets have different ones. "
            f"Received: {sizes}"
        )

    def system_folder(self, system: SystemSettings) -> Path:
        """The folder of all runs of a system."""
        return self.path / RUNS / system.folder

    def run_folder(self, system: SystemSettings, seed: int) -> Path:
        """The folder of a run."""
        return self.system_folder(system) / f"seed-{seed}"

    def translation(
        self, test: TestSettings, system: SystemSettings, seed: int
    ) -> Path:
        """The file with the translations of a test set by a run."""
        return self.path / TRANSLATIONS / test.folder / f"{system.folder}-{seed}.txt"

    def settings_of(self, system: SystemSettings) -> dict[str, Any]:
        """All that decides how the runs of a system are trained, by name of the key."""
        s = self.settings
        data = describe_data(get(system.preset), self.corpus, s.subwords)
        values = {
            "preset": data.pop("preset"),
            "vocabulary.size": self.vocabulary_size(),
            "run.precision": self.precision,
            "corpus.train": data.pop("train_sentences"),
            "corpus.validation": data.pop("validation_sentences", None),
        }
        values |= {f"vocabulary.{k}": s.subwords.get(k, v) for k, v in SUBWORDS.items()}
        for name in ("updates", "minutes", "tokens", "validations", "validate_every"):
            values[f"budget.{name}"] = getattr(s.budget, name)
        values |= {f"options.{key}": value for key, value in system.options.items()}
        values |= {f"training.{key}": value for key, value in system.training.items()}
        # Through JSON and back, so that a tuple equals the list it is read back as.
        return json.loads(json.dumps(values))

    def record(self, system: SystemSettings, seed: int) -> RunRecord | None:
        """The record of a run; `None` if its training has not ended."""
        path = self.run_folder(system, seed) / RECORD
        return read_record(path, RunRecord) if path.exists() else None

    def digest(self, test: TestSettings, system: SystemSettings, seed: int) -> str:
        """A digest of all that decides the translations of a test set by a run."""
        run = self.run_folder(system, seed)
        decided_by = (
            content_sha256(self.files(test)[:1]),
            self.settings.beam_size,
            self.settings.length_penalty,
            file_entry(run / better_model(run / LOG) / MANIFEST)["sha256"],
        )
        return hashlib.sha256(repr(decided_by).encode()).hexdigest()

    def files(self, test: TestSettings) -> tuple[Path, Path]:
        """The files of a test set."""
        corpus = self.corpus if test.data is None else self.load(test.data)
        return corpus.files(test.split)

    def has_translated(
        self, test: TestSettings, system: SystemSettings, seed: int
    ) -> bool:
        """Whether a run has ended, and translated a test set as it should."""
        record = self.record(system, seed)
        return (
            record is not None
            and self.translation(test, system, seed).is_file()
            and record.translations.get(test.name) == self.digest(test, system, seed)
        )

    def is_done(self, system: SystemSettings, seed: int) -> bool:
        """Whether a run has ended, and translated all that it should."""
        tests = self.settings.translated
        return all(self.has_translated(test, system, seed) for test in tests)

    def can_be_scored(self, system: SystemSettings, seed: int) -> bool:
        """Whether a run has ended, and translated all test sets."""
        tests = self.settings.test_sets
        return all(self.has_translated(test, system, seed) for test in tests)

    def translations(
        self, test: TestSettings, system: SystemSettings, seed: int
    ) -> list[str]:
        """The translations of a test set by a run.

        Raises:
            DamagedFolderError: there are not as many as sources.
        """
        path = self.translation(test, system, seed)
        lines = split_lines(path.read_text("utf-8"))
        wanted = len(self.pairs(test)[0])
        if len(lines) != wanted:
            raise DamagedFolderError(
                f"{path} must have {wanted} lines: remove it, and it is written again. "
                f"Received: {len(lines)} lines"
            )
        return lines

    def translator(self, model: Any, tokenizer: Any) -> Translator:
        """A translator with a model and the search of the comparison."""
        s = self.settings
        search = SearchSettings.of(
            model, beam_size=s.beam_size, length_penalty=s.length_penalty
        )
        # Without XLA: compiling every shape takes longer than a test set.
        return Translator(
            model, tokenizer, search.beam_size, search.length_penalty, xla=False
        )
