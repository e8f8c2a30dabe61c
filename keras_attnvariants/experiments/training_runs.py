"""Runs of a comparison: trained or continued, and the test sets translated."""

import time
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants.experiments.comparison_folder import RECORD
from keras_attnvariants.experiments.comparison_folder import ComparisonFolder
from keras_attnvariants.experiments.comparison_folder import RunRecord
from keras_attnvariants.experiments.published_figures import published
from keras_attnvariants.experiments.results import RunResult
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.presets import Preset
from keras_attnvariants.presets import get
from keras_attnvariants.training import NoamSchedule
from keras_attnvariants.training import StatefulCallback
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training import load_run
from keras_attnvariants.training import train_preset
from keras_attnvariants.training.folder import LOG
from keras_attnvariants.training.folder import clear_full_disk
from keras_attnvariants.training.runs import better_model
from keras_attnvariants.training.runs import preset_settings
from keras_attnvariants.training.runs import read_log
from keras_attnvariants.training.vocabulary import copy_vocabulary
from keras_attnvariants.tuning.results import measure_runs
from keras_attnvariants.tuning.results import peak_mib
from keras_attnvariants.utils.dataclass_json import write_record
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.lines import on_one_line

# Told how far a run is, from 0 to 1, and what it does.
Report = Callable[[float, str], None]


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


def do_run(
    folder: ComparisonFolder, system: SystemSettings, seed: int, report: Report
) -> None:
    """Trains a run, or continues it, and translates the test sets with it."""
    folder.import_modules()
    run = folder.run_folder(system, seed)
    record = folder.record(system, seed)
    if record is None:
        record = RunRecord(train(folder, system, seed, report))
        write_record(run / RECORD, record)
    missing = [
        test
        for test in folder.settings.translated
        if not folder.has_translated(test, system, seed)
    ]
    if not missing:
        return
    translator = folder.translator(*load_run(run))
    for test in missing:
        report(1.0, f"translating {test.name}")
        path = folder.translation(test, system, seed)
        with clear_full_disk(path.parent):
            translations = translator.translate(folder.pairs(test)[0])
            path.parent.mkdir(parents=True, exist_ok=True)
            text = "".join(f"{on_one_line(line)}\n" for line in translations)
            write_file(path, text.encode())
            record.translations[test.name] = folder.digest(test, system, seed)
            write_record(run / RECORD, record)


def train(
    folder: ComparisonFolder, system: SystemSettings, seed: int, report: Report
) -> RunResult:
    """Trains a run, or continues it."""
    run, budget = folder.run_folder(system, seed), folder.settings.budget
    preset = get(system.preset)
    batch_tokens, settings = training_settings(folder, system, preset)
    minutes = budget.time_limit(budget.validations)
    limit = None if minutes is None else TimeLimit(minutes)
    meter = CostMeter()
    callbacks = [meter, Reporter(report, settings["steps"], limit)]
    with clear_full_disk(run):
        copy_vocabulary(folder.path, run)
        result = train_preset(
            preset,
            folder.corpus,
            run,
            vocabulary_size=folder.vocabulary_size(),
            subwords=folder.settings.subwords,
            batch_tokens=batch_tokens,
            sizes=system.options,
            settings=settings,
            precision=folder.precision,
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
    folder: ComparisonFolder, system: SystemSettings, preset: Preset
) -> tuple[int, dict[str, Any]]:
    """Positions of a batch, and fields of `TrainingConfig`, of a system."""
    given = dict(system.training)
    given.pop("bleu_sentences", None)
    batch_tokens = given.pop("batch_tokens", preset.training.batch_tokens)
    if {"learning_rate", "warmup_steps"} & given.keys():
        given["learning_rate"] = NoamSchedule.from_peak(
            given.pop("learning_rate", 1e-3), given.pop("warmup_steps", 1000)
        )
    budget = folder.settings.budget
    return batch_tokens, budget.training(batch_tokens, given, budget.validations)


def check_system(folder: ComparisonFolder, system: SystemSettings) -> int:
    """Raises unless a system can be built and trained; no array is allocated.

    Returns:
        The number of its parameters.

    Raises:
        ValueError: says which system, and what is wrong.
    """
    try:
        preset = get(system.preset)
        count = preset.count(folder.vocabulary_size(), **system.options)
        _, settings = training_settings(folder, system, preset)
        TrainingConfig(**preset_settings(preset) | settings)
        published(preset, system.published)
    except (ValueError, TypeError) as error:
        raise ValueError(f"System {system.name!r} does not build: {error}") from error
    return count


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
