"""One run of a comparison: trained, or continued, and its test sets translated."""

import hashlib
import json
import time
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants.data import Corpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.decoding import Translator
from keras_attnvariants.experiments.published import published
from keras_attnvariants.experiments.records import read_record
from keras_attnvariants.experiments.records import write_record
from keras_attnvariants.experiments.results import RunResult
from keras_attnvariants.experiments.settings import ComparisonSettings
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.experiments.settings import TestSettings
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.models.saving import TOKENIZER
from keras_attnvariants.presets import Preset
from keras_attnvariants.presets import get
from keras_attnvariants.training import NoamSchedule
from keras_attnvariants.training import StatefulCallback
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training import load_run
from keras_attnvariants.training import train_preset
from keras_attnvariants.training.loop import LOG
from keras_attnvariants.training.run import clear_full_disk
from keras_attnvariants.training.runs import SUBWORDS
from keras_attnvariants.training.runs import better_model
from keras_attnvariants.training.runs import content_sha256
from keras_attnvariants.training.runs import describe_data
from keras_attnvariants.training.runs import preset_settings
from keras_attnvariants.training.runs import read_log
from keras_attnvariants.tuning.memory import peak_mib
from keras_attnvariants.tuning.records import measure_runs
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.lines import on_one_line
from keras_attnvariants.utils.lines import split_lines

RECORD = "record.json"
RUNS = "runs"
TRANSLATIONS = "translations"

# Told how far a run is, from 0 to 1, and what it does.
Report = Callable[[float, str], None]


@dataclass(frozen=True)
class RunRecord:
    """What is known of a run whose training has ended.

    Attributes:
        result: how it went; its curve is in the log.
        translations: a digest of what decided each translation, by name of the test
            set.
    """

    result: RunResult
    translations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """What all runs of a comparison share; can be pickled for other processes.

    Attributes:
        settings: of the comparison.
        folder: of the comparison.
        precision: dtype policy of all models.
    """

    settings: ComparisonSettings
    folder: Path
    precision: str

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus of the training data."""
        return self.load(self.settings.data)

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

    def run_folder(self, system: SystemSettings, seed: int) -> Path:
        """The folder of a run."""
        return self.folder / RUNS / system.folder / f"seed-{seed}"

    def translation(
        self, test: TestSettings, system: SystemSettings, seed: int
    ) -> Path:
        """The file with the translations of a test set by a run."""
        return self.folder / TRANSLATIONS / test.folder / f"{system.folder}-{seed}.txt"

    def settings_of(self, system: SystemSettings) -> dict[str, Any]:
        """What decides how the runs of a system are trained, by name of the key."""
        s = self.settings
        data = describe_data({}, get(system.preset), self.corpus, s.subwords)
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
        """What decides the translations of a test set by a run, as a digest."""
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

    def untranslated(
        self, system: SystemSettings, seed: int, record: RunRecord
    ) -> list[TestSettings]:
        """The test sets that a trained run has not translated as it should."""
        return [
            test
            for test in self.settings.test_sets
            if not self.translation(test, system, seed).is_file()
            or record.translations.get(test.name) != self.digest(test, system, seed)
        ]

    def is_done(self, system: SystemSettings, seed: int) -> bool:
        """Whether a run has been trained, and all test sets translated."""
        record = self.record(system, seed)
        return record is not None and not self.untranslated(system, seed, record)

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
        """What translates with a model, as the comparison does."""
        s = self.settings
        search = SearchSettings.of(
            model, beam_size=s.beam_size, length_penalty=s.length_penalty
        )
        # Without XLA: compiling every shape takes longer than a test set.
        return Translator(
            model, tokenizer, search.beam_size, search.length_penalty, xla=False
        )


class CostMeter(StatefulCallback):
    """Counts what training costs this process, over all resumes.

    Attributes:
        memory_mib: largest resident memory so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory_mib = 0.0
        self._before = 0.0
        self._start: float | None = None

    @property
    def cpu_seconds(self) -> float:
        """Seconds of all processors together."""
        spent = 0.0 if self._start is None else time.process_time() - self._start
        return self._before + spent

    def get_state(self) -> dict[str, Any]:
        self.memory_mib = max(self.memory_mib, peak_mib())
        return {"cpu_seconds": self.cpu_seconds, "memory_mib": self.memory_mib}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._before, self.memory_mib = state["cpu_seconds"], state["memory_mib"]

    def on_train_begin(self, logs: Any = None) -> None:
        if self._start is None:
            self._start = time.process_time()

    def on_train_end(self, logs: Any = None) -> None:
        self.memory_mib = max(self.memory_mib, peak_mib())


class Reporter(keras.callbacks.Callback):
    """Tells, once a second at most, how far a training is.

    Args:
        report: is told.
        steps: updates of the whole run.
        limit: its `TimeLimit`, if it has one.
    """

    def __init__(self, report: Report, steps: int, limit: TimeLimit | None) -> None:
        super().__init__()
        self._report = report
        self._steps = steps
        self._limit = limit
        self._next = 0.0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + 1.0
        step = int(self.model.optimizer.iterations)
        done = step / self._steps
        if self._limit is not None:
            done = max(done, self._limit.seconds / self._limit.limit)
        loss = (logs or {}).get("loss", 0.0)
        self._report(min(done, 1.0), f"update {step:,}, loss {loss:.2f}")


def do_run(work: Work, system: SystemSettings, seed: int, report: Report) -> None:
    """Trains a run, or continues it, and translates the test sets with it."""
    run = work.run_folder(system, seed)
    record = work.record(system, seed)
    if record is None:
        record = RunRecord(train(work, system, seed, report))
        write_record(run / RECORD, record)
    missing = work.untranslated(system, seed, record)
    if not missing:
        return
    translator = work.translator(*load_run(run))
    for test in missing:
        report(1.0, f"translating {test.name}")
        path = work.translation(test, system, seed)
        with clear_full_disk(path.parent):
            translations = translator.translate(work.pairs(test)[0])
            path.parent.mkdir(parents=True, exist_ok=True)
            text = "".join(f"{on_one_line(line)}\n" for line in translations)
            write_file(path, text.encode())
            record.translations[test.name] = work.digest(test, system, seed)
            write_record(run / RECORD, record)


def train(work: Work, system: SystemSettings, seed: int, report: Report) -> RunResult:
    """Trains a run, or continues it."""
    run, budget = work.run_folder(system, seed), work.settings.budget
    preset = get(system.preset)
    batch_tokens, settings = training_settings(work, system, preset)
    minutes = budget.time_limit(budget.validations)
    limit = None if minutes is None else TimeLimit(minutes)
    meter = CostMeter()
    callbacks = [meter, Reporter(report, settings["steps"], limit)]
    with clear_full_disk(run):
        copy_tokenizer(work.folder, run)
        result = train_preset(
            preset,
            work.corpus,
            run,
            vocabulary_size=work.vocabulary_size(),
            subwords=work.settings.subwords,
            batch_tokens=batch_tokens,
            sizes=system.options,
            settings=settings,
            precision=work.precision,
            seed=seed,
            bleu_sentences=system.training.get("bleu_sentences", 0),
            samples=0,
            callbacks=callbacks if limit is None else [limit, *callbacks],
            verbose=0,
        )
    speed, spent = measure_runs([run])
    return RunResult(
        system=system.name,
        seed=seed,
        updates=result.step,
        seconds=60 * spent,
        cpu_seconds=meter.cpu_seconds,
        tokens_per_second=speed,
        memory_mib=meter.memory_mib,
        validation_loss=validation_loss(run),
    )


def training_settings(
    work: Work, system: SystemSettings, preset: Preset
) -> tuple[int, dict[str, Any]]:
    """Positions of a batch, and fields of `TrainingConfig`, of a system."""
    given = dict(system.training)
    given.pop("bleu_sentences", None)
    batch_tokens = given.pop("batch_tokens", preset.training.batch_tokens)
    if {"learning_rate", "warmup_steps"} & given.keys():
        given["learning_rate"] = NoamSchedule.from_peak(
            given.pop("learning_rate", 1e-3), given.pop("warmup_steps", 1000)
        )
    budget = work.settings.budget
    update_tokens = batch_tokens * given.get("accumulate", 1)
    period = budget.period(update_tokens)
    settings = {
        "save_every": max(1, min(100, period)),
        "log_every": max(1, min(100, period // 2)),
        **given,
        "steps": budget.steps(update_tokens, budget.validations),
        "validate_every": period,
    }
    return batch_tokens, settings


def check_system(work: Work, system: SystemSettings) -> int:
    """Raises unless a system can be built and trained; no array is allocated.

    Returns:
        The number of its parameters.

    Raises:
        ValueError: says which system, and what is wrong.
    """
    try:
        preset = get(system.preset)
        count = preset.count(work.vocabulary_size(), **system.options)
        _, settings = training_settings(work, system, preset)
        TrainingConfig(**preset_settings(preset) | settings)
        published(preset, system.published)
    except (ValueError, TypeError) as error:
        raise ValueError(f"System {system.name!r} does not build: {error}") from error
    return count


def prepare_tokenizer(work: Work) -> None:
    """Trains the vocabulary of all systems, unless it is there."""
    path = work.folder / TOKENIZER
    if not path.is_file():
        files = work.corpus.files("train")
        size, subwords = work.vocabulary_size(), work.settings.subwords
        tokenizer = Tokenizer.train(files, size, **subwords)
        write_file(path, tokenizer.model_bytes)


def copy_tokenizer(folder: Path, run: Path) -> None:
    """Gives a new run the vocabulary of all systems."""
    run.mkdir(parents=True, exist_ok=True)
    if not (run / TOKENIZER).exists():
        write_file(run / TOKENIZER, (folder / TOKENIZER).read_bytes())


def validation_loss(run: Path) -> float | None:
    """That of the model of a run that `load_run` loads; `None` without validation."""
    log = run / LOG
    events = [event for event in read_log(log) if event.get("val_loss") is not None]
    averages = [event for event in events if event["event"] == "averaged"]
    if averages and better_model(log) == "averaged":
        return float(averages[-1]["val_loss"])
    periods = [event for event in events if event["event"] == "period"]
    if any("val_bleu" in event for event in periods):
        return float(max(periods, key=lambda e: e.get("val_bleu") or 0.0)["val_loss"])
    return min((float(event["val_loss"]) for event in periods), default=None)
