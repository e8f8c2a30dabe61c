"""The folder of a comparison: its data, its runs, and the settings of each."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

from keras_attnvariants.data import Corpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.decoding import Translator
from keras_attnvariants.experiments.checked_tables import path_name
from keras_attnvariants.experiments.results import RunResult
from keras_attnvariants.experiments.settings import ComparisonSettings
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.experiments.settings import TestSettings
from keras_attnvariants.experiments.settings import VocabularySettings
from keras_attnvariants.presets import get
from keras_attnvariants.training import faster_precision
from keras_attnvariants.training.fine_tuning import FineTuning
from keras_attnvariants.training.fine_tuning import fine_tuning_from
from keras_attnvariants.training.run_models import LOG
from keras_attnvariants.training.run_models import better_model
from keras_attnvariants.training.training_config import SUBWORDS
from keras_attnvariants.training.training_config import content_sha256
from keras_attnvariants.training.training_config import describe_data
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import replace_file
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.importing import import_named
from keras_attnvariants.utils.lines import on_one_line
from keras_attnvariants.utils.lines import split_lines
from keras_attnvariants.utils.records import read_record

# Files with the settings of all models, and of each system.
SETTINGS = "settings.json"
# Speed and analyses of the first run of a system.
EXAMINATION = "examination.json"
# Suffix of the names of records outside of the folder.
RECORD = ".json.xz"


@dataclass(frozen=True)
class ComparisonFolder:
    """A comparison in its folder; can be pickled for other processes.

    Attributes:
        settings: settings of the comparison.
        path: path of the folder.
        records: folder of the records of runs that have ended; `None` for none.
    """

    settings: ComparisonSettings
    path: Path
    records: Path | None = None

    @cached_property
    def precision(self) -> str:
        """The dtype policy of all models: that of existing ones, or the faster one."""
        if self.settings.run.precision != "auto":
            return self.settings.run.precision
        path = self.path / SETTINGS
        return read_json(path)["precision"] if path.exists() else faster_precision()

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus of the training data."""
        return self._load(self.settings.corpus.data)

    def _load(self, data: str) -> Corpus:
        c = self.settings.corpus
        return load_corpus(
            data, c.source, c.target, max_invalid=c.max_invalid, task=c.task
        )

    def corpus_of(self, test: TestSettings) -> Corpus:
        """The corpus of a test set, which is one of its splits."""
        return self.corpus if test.data is None else self._load(test.data)

    def pairs(self, test: TestSettings) -> tuple[list[str], list[str]]:
        """Sources and references of a test set."""
        return self.corpus_of(test).read_lines(test.split)

    def files(self, test: TestSettings) -> tuple[Path, Path]:
        """The files of a test set."""
        return self.corpus_of(test).files(test.split)

    def import_modules(self) -> None:
        """Imports the modules that the file names, in this process.

        Raises:
            ValueError: one of them cannot be imported.
        """
        for module in self.settings.imports:
            import_named("import", module)

    def vocabulary_size(self) -> int:
        """Number of tokens in the vocabulary of all systems.

        Raises:
            ValueError: presets have different numbers, and the file gives none; or
                it gives one, but a model has its own.
        """
        if self.tokenizer is not None:
            return self.tokenizer.vocabulary_size
        if self.settings.vocabulary.size is not None:
            return self.settings.vocabulary.size
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

    @property
    def tokenizer(self) -> Tokenizer | None:
        """Tokenizer of the models that systems continue from; `None` if none does.

        Raises:
            ValueError: these have different ones, or the file also describes one.
        """
        found = {
            start.trained.tokenizer.sha256: start.trained.tokenizer
            for run in self.runs()
            if (start := run.start) is not None
        }
        is_given = self.settings.vocabulary != VocabularySettings()
        if len(found) > 1 or (found and is_given):
            raise ValueError(
                "Systems with `continue_from` use the vocabulary of their model, and "
                "all systems must use the same: leave out [vocabulary], and name "
                f"models that share one. Received: {len(found)} in the models"
            )
        return next(iter(found.values()), None)

    def options(self, system: SystemSettings) -> dict[str, Any]:
        """Options of a system's preset, with the sizes of a model that it begins with.

        Raises:
            FileNotFoundError, ValueError, FetchError: there is no such model.
        """
        start = self.first_run(system).start
        sizes = {} if start is None else start.sizes(get(system.preset))
        return {**sizes, **system.options}

    def system_folder(self, system: SystemSettings) -> Path:
        """The folder of all runs of a system."""
        return self.path / "runs" / path_name(system.name)

    def runs(self, systems: Sequence[SystemSettings] = ()) -> "list[Run]":
        """The runs of some systems, by default of all, by system and seed."""
        seeds = self.settings.seeds
        chosen = systems or self.settings.systems
        return [Run(self, system, seed) for system in chosen for seed in seeds]

    def first_run(self, system: SystemSettings) -> "Run":
        """The run of a system with the first seed."""
        return Run(self, system, self.settings.seeds[0])

    def settings_of(self, system: SystemSettings) -> dict[str, Any]:
        """Everything that determines the training of a system's runs, by key."""
        s, subwords = self.settings, self.settings.vocabulary.subwords
        data = describe_data(get(system.preset), self.corpus, subwords)
        values = {
            "preset": data.pop("preset"),
            "vocabulary.size": self.vocabulary_size(),
            "run.precision": self.precision,
            "corpus.train": data.pop("train_sentences"),
            "corpus.validation": data.pop("validation_sentences", None),
        }
        for table, found in (
            ("vocabulary", SUBWORDS | subwords),
            ("budget", vars(s.budget)),
            ("options", system.options),
            ("training", system.training),
        ):
            values |= {f"{table}.{key}": value for key, value in found.items()}
        if (start := self.first_run(system).start) is not None:
            values["continue_from"] = start.describe()["from_model"]
        # Through JSON and back, so that tuples equal the lists that are read back.
        return json.loads(json.dumps(values))

    def translator(self, model: Any, tokenizer: Any) -> Translator:
        """A translator with a model and the search of the comparison."""
        # Without XLA: compiling every shape takes longer than a test set.
        return Translator(model, tokenizer, **vars(self.settings.decoding), xla=False)


@dataclass(frozen=True)
class RunRecord:
    """A run whose training has ended.

    Attributes:
        result: results of the training; the curve is in the log.
        translations: digests of everything that determined the translations, by name
            of the test set.
    """

    result: RunResult
    translations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """A run of a system in the folder; it need not exist yet."""

    folder: ComparisonFolder
    system: SystemSettings
    seed: int

    @property
    def name(self) -> str:
        """System and seed, for people to read."""
        return f"{self.system.name} {self.seed}"

    @property
    def start(self) -> FineTuning | None:
        """The model that it begins with, the seed in the place of `{seed}`."""
        model = self.system.continue_from
        return fine_tuning_from(model and model.replace("{seed}", str(self.seed)))

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self.folder.system_folder(self.system) / f"seed-{self.seed}"

    @property
    def record_path(self) -> Path:
        """The file with its record."""
        return self.path / "record.json"

    @property
    def record(self) -> RunRecord | None:
        """Its record; `None` if its training has not ended."""
        path = self.record_path
        return read_record(path, RunRecord) if path.exists() else None

    @property
    def kept(self) -> Path | None:
        """The file outside of the folder with everything but its weights."""
        records, name = self.folder.records, path_name(self.system.name)
        return None if records is None else records / f"{name}-{self.seed}{RECORD}"

    def translation(self, test: TestSettings) -> Path:
        """The file with its translations of a test set."""
        folder = self.folder.path / "translations" / path_name(test.name)
        return folder / f"{path_name(self.system.name)}-{self.seed}.txt"

    def write_translations(self, test: TestSettings, translations: list[str]) -> None:
        """Writes its translations of a test set."""
        text = "".join(f"{on_one_line(line)}\n" for line in translations)
        write(self.translation(test), text.encode())

    def digest(self, test: TestSettings) -> str:
        """A digest of everything that determines its translations of a test set."""
        model = self.path / better_model(self.path / LOG)
        decoding = self.folder.settings.decoding
        decided_by = (
            content_sha256(self.folder.files(test)[:1]),
            decoding.beam_size,
            decoding.length_penalty,
            file_entry(model / MANIFEST)["sha256"],
        )
        return hashlib.sha256(repr(decided_by).encode()).hexdigest()

    def has_translated(self, *tests: TestSettings) -> bool:
        """Whether it has ended, and its translations of test sets are up to date."""
        record = self.record
        return record is not None and all(
            self.translation(test).is_file()
            and record.translations.get(test.name) == self.digest(test)
            for test in tests
        )

    def translations(self, test: TestSettings) -> list[str]:
        """Its translations of a test set.

        Raises:
            DamagedFolderError: there are not as many as sources.
        """
        path = self.translation(test)
        lines = split_lines(path.read_text("utf-8"))
        wanted = len(self.folder.pairs(test)[0])
        if len(lines) != wanted:
            raise DamagedFolderError(
                f"{path} must have {wanted} lines: remove it, and it is written again. "
                f"Received: {len(lines)} lines"
            )
        return lines


def write(path: Path, data: bytes) -> None:
    """Writes a file, and creates its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)
