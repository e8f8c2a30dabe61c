"""One run of a comparison: trained, or continued, and its test sets translated."""

from pathlib import Path
from typing import Any

from keras_attnvariants.experiments.callbacks import CostMeter
from keras_attnvariants.experiments.callbacks import Report
from keras_attnvariants.experiments.callbacks import Reporter
from keras_attnvariants.experiments.published import published
from keras_attnvariants.experiments.records import write_record
from keras_attnvariants.experiments.results import RunResult
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.experiments.work import RECORD
from keras_attnvariants.experiments.work import RunRecord
from keras_attnvariants.experiments.work import Work
from keras_attnvariants.presets import Preset
from keras_attnvariants.presets import get
from keras_attnvariants.training import NoamSchedule
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training import load_run
from keras_attnvariants.training import train_preset
from keras_attnvariants.training.loop import LOG
from keras_attnvariants.training.run import clear_full_disk
from keras_attnvariants.training.runs import better_model
from keras_attnvariants.training.runs import preset_settings
from keras_attnvariants.training.runs import read_log
from keras_attnvariants.training.vocabulary import copy_vocabulary
from keras_attnvariants.tuning.results import measure_runs
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.lines import on_one_line


def do_run(work: Work, system: SystemSettings, seed: int, report: Report) -> None:
    """Trains a run, or continues it, and translates the test sets with it."""
    run = work.run_folder(system, seed)
    record = work.record(system, seed)
    if record is None:
        record = RunRecord(train(work, system, seed, report))
        write_record(run / RECORD, record)
    missing = [
        test
        for test in work.settings.translated
        if not work.has_translated(test, system, seed)
    ]
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
        copy_vocabulary(work.folder, run)
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
    return batch_tokens, budget.training(batch_tokens, given, budget.validations)


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
