"""Trains or continues runs of a comparison, and translates the test sets."""

import dataclasses
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants.data.model_folders import LoadedModel
from keras_attnvariants.experiments.comparison_folder import ComparisonFolder
from keras_attnvariants.experiments.comparison_folder import Run
from keras_attnvariants.experiments.comparison_folder import RunRecord
from keras_attnvariants.experiments.results import RunResult
from keras_attnvariants.experiments.run_records import keep
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.presets import get
from keras_attnvariants.training import StatefulCallback
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import load_run
from keras_attnvariants.training import train_preset
from keras_attnvariants.training.run_models import LOG
from keras_attnvariants.training.run_models import better_event
from keras_attnvariants.training.run_models import read_weights
from keras_attnvariants.training.run_models import write_weights
from keras_attnvariants.training.run_settings import copy_vocabulary
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.training.state import clear_full_disk
from keras_attnvariants.training.time_limits import share_done
from keras_attnvariants.training.training_config import with_schedule
from keras_attnvariants.tuning.job_processes import Report
from keras_attnvariants.tuning.results import measure_runs
from keras_attnvariants.tuning.results import peak_mib
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.machine import kind_of_processor
from keras_attnvariants.utils.records import grouped
from keras_attnvariants.utils.records import write_record


@dataclasses.dataclass(eq=False)
class CostMeter(StatefulCallback):
    """Measures the cost of training over all resumes, and reports its progress.

    Args:
        report: called at most once a second.
        steps: updates of the whole run.
        limit: its `TimeLimit`, if it has one.
    """

    report: Report
    steps: int
    limit: TimeLimit | None

    def __post_init__(self) -> None:
        super().__init__()
        self._next = 0.0
        self._began: float | None = None
        # Costs in earlier processes.
        self._before: Mapping[str, float] = {"cpu_seconds": 0.0, "memory_mib": 0.0}

    def get_state(self) -> dict[str, Any]:
        """Total processor time so far, and largest resident memory."""
        spent = 0.0 if self._began is None else time.process_time() - self._began
        return {
            "cpu_seconds": self._before["cpu_seconds"] + spent,
            "memory_mib": max(self._before["memory_mib"], peak_mib()),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        self._before = state

    def on_train_begin(self, logs: Any = None) -> None:
        self._began = self._began or time.process_time()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + 1.0
        step = int(self.model.optimizer.iterations)
        done = share_done(step, self.steps, self.limit)
        loss = (logs or {}).get("loss", 0.0)
        self.report(done, f"update {step:,}, loss {loss:.2f}")


def do_run(run: Run, report: Report) -> None:
    """Trains or continues a run, and translates the test sets with it."""
    run.folder.import_modules()
    record = run.record
    if record is None:
        record = RunRecord(train(run, report))
        write_record(run.record_path, record)
    tests = run.folder.settings.translated
    missing = [test for test in tests if not run.has_translated(test)]
    for share, some in grouped(missing, "share").items():
        translator = run.folder.translator(*model_at(run, share))
        for test in some:
            report(1.0, f"translating {test.name}")
            with clear_full_disk(run.translation(test).parent):
                translations = translator.translate(run.folder.pairs(test)[0])
                run.write_translations(test, translations)
                record.translations[test.name] = run.digest(test)
                write_record(run.record_path, record)
    keep(run)


def snapshot(run: Path, number: int) -> Path:
    """The folder with the weights of a run after some validations."""
    return run / "snapshots" / f"validation-{number:06d}"


def validations(settings: Mapping[str, Any], share: float) -> int:
    """Number of validations until a share of the updates is done."""
    whole: int = math.ceil(settings["steps"] / settings["validate_every"])
    return max(1, round(share * whole))


def model_at(run: Run, share: float | None) -> LoadedModel:
    """The finished model of a run, or the model with earlier weights.

    Args:
        run: the run.
        share: share of the budget at which to take the weights, or the last weights if
            the run ended earlier. `None` for the finished model.

    Raises:
        DamagedFolderError: there are no weights, for instance because the run was
            restored from its record, or trained with other points.
    """
    point = "" if share is None else f" at {100 * share:.0f} % of the budget"
    try:
        loaded = load_run(run.path)
        if share is not None and (record := run.record):
            _, settings = training_settings(run.folder, run.system)
            ended = math.ceil(record.result.updates / settings["validate_every"])
            arrays = read_weights(
                snapshot(run.path, min(validations(settings, share), ended))
            )
            assign_arrays(loaded.model.weights, arrays, "model")
    except (DamagedFolderError, FileNotFoundError) as error:
        raise DamagedFolderError(
            f"{run.name} has no weights{point} to translate the remaining test sets; "
            "remove its folder and its record, and it is trained again. "
            f"Received: {run.path}"
        ) from error
    return loaded


def train(run: Run, report: Report) -> RunResult:
    """Trains or continues a run."""
    folder, system, budget = run.folder, run.system, run.folder.settings.budget
    batch_tokens, settings = training_settings(folder, system)
    limits = budget.limits()
    meter = CostMeter(report, settings["steps"], next(iter(limits), None))
    shares = {test.share or 1.0 for test in folder.settings.points}
    kept = {validations(settings, share) for share in shares}

    def keep_weights(epoch: int, logs: Any) -> None:
        if epoch + 1 in kept or (kept and meter.model.stop_training):
            write_weights(snapshot(run.path, epoch + 1), meter.model)

    keep_some = keras.callbacks.LambdaCallback(on_epoch_end=keep_weights)
    with clear_full_disk(run.path):
        copy_vocabulary(folder.path, run.path)
        result = train_preset(
            get(system.preset),
            folder.corpus,
            run.path,
            fine_tuning=run.start,
            vocabulary_size=folder.vocabulary_size(),
            subwords=folder.settings.vocabulary.subwords,
            batch_tokens=batch_tokens,
            sizes=system.options,
            settings=settings,
            precision=folder.precision,
            seed=run.seed,
            score_sentences=system.training.get("score_sentences", 0),
            samples=0,
            callbacks=[*limits, meter, keep_some],
            verbose=0,
        )
    speed, spent = measure_runs([run.path])
    chosen = better_event(run.path / LOG) or {}
    return RunResult(
        system=system.name,
        seed=run.seed,
        updates=result.step,
        seconds=60 * spent,
        tokens_per_second=speed,
        validation_loss=chosen.get("val_loss"),
        processor=kind_of_processor(),
        **meter.get_state(),
    )


def training_settings(
    folder: ComparisonFolder, system: SystemSettings
) -> tuple[int, dict[str, Any]]:
    """The batch size in positions, and fields of `TrainingConfig`, of a system."""
    given = dict(system.training)
    check_integer("score_sentences", given.pop("score_sentences", 0), minimum=0)
    usual = get(system.preset).training.batch_tokens
    batch_tokens = check_integer("batch_tokens", given.pop("batch_tokens", usual))
    budget, given = folder.settings.budget, with_schedule(given)
    return batch_tokens, budget.training(batch_tokens, given)
