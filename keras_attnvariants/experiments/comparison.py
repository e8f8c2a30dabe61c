"""Runs a comparison in its folder: checks, trains, translates, scores and reports."""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from keras_attnvariants.data import tasks
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.experiments import result_files
from keras_attnvariants.experiments.comparison_folder import SETTINGS
from keras_attnvariants.experiments.comparison_folder import ComparisonFolder
from keras_attnvariants.experiments.comparison_folder import write
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.experiments.run_records import keep_all
from keras_attnvariants.experiments.run_records import restore_all
from keras_attnvariants.experiments.settings import ComparisonSettings
from keras_attnvariants.experiments.settings import SystemSettings
from keras_attnvariants.experiments.settings import TestSettings
from keras_attnvariants.experiments.settings import read_settings
from keras_attnvariants.experiments.summary import summarize
from keras_attnvariants.experiments.system_analysis import check_data
from keras_attnvariants.experiments.system_analysis import do_examination
from keras_attnvariants.experiments.system_analysis import is_examined
from keras_attnvariants.experiments.training_runs import do_run
from keras_attnvariants.experiments.training_runs import training_settings
from keras_attnvariants.presets import get
from keras_attnvariants.training import DifferentSettingsError
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training.run_settings import CONFIG
from keras_attnvariants.training.run_settings import differences_of
from keras_attnvariants.training.run_settings import prepare_vocabulary
from keras_attnvariants.training.training_config import preset_settings
from keras_attnvariants.tuning.job_processes import IncompleteError
from keras_attnvariants.tuning.job_processes import Job
from keras_attnvariants.tuning.job_processes import run_jobs
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import remove_leftovers
from keras_attnvariants.utils.locks import lock_folder
from keras_attnvariants.utils.machine import check_extra
from keras_attnvariants.utils.metrics import make_metric

FILE = "comparison.toml"


@dataclass(frozen=True)
class Comparison:
    """A comparison that can be started, continued and scored.

    Attributes:
        settings: what is compared.
        folder: folder for all output.

    Example:

    ```python
    settings = kav.experiments.read_settings("comparison.toml")
    result = kav.experiments.Comparison(settings, "runs/comparison").run()
    print(result.score("base", "test2016", "BLEU"))
    ```
    """

    settings: ComparisonSettings
    folder: str | os.PathLike[str]

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        folder: str | os.PathLike[str],
        imports: Sequence[str] = (),
    ) -> "Comparison":
        """The comparison that a TOML file describes.

        Args:
            path: the file.
            folder: folder for all output.
            imports: modules to import before those that the file names.

        Raises:
            ValueError, OSError: the file cannot be read, or something in it is wrong.
        """
        settings = read_settings(Path(path))
        modules = (*imports, *settings.imports)
        return cls(replace(settings, imports=modules), folder)

    def run(
        self,
        only: Sequence[str] = (),
        minutes: float | None = None,
        score_only: bool = False,
        command: str = "",
        records: str | os.PathLike[str] | None = None,
    ) -> ComparisonResult:
        """Trains what is missing, translates, scores, and writes the results.

        A killed comparison continues where it stopped; finished runs are not trained
        again.

        Args:
            only: names of systems; by default all are trained.
            minutes: minutes after which runs save their state and end. A later call
                continues them.
            score_only: whether to train nothing, and score the finished runs.
            command: command that produces the results, for their origin.
            records: folder with the vocabulary and a small file per run, which contains
                all but the weights. Runs with a file there need not be in the folder of
                the comparison.

        Raises:
            ValueError: a package is missing, a setting is wrong, or a system does not
                build.
            DifferentSettingsError: the folder contains runs with other settings.
            FolderInUseError: another process uses the folder.
            IncompleteError: a run failed; the results of the others are written.
        """
        check_extra("A comparison", "compare", result_files.NEEDED)
        s, path = self.settings, Path(self.folder)
        systems = [s.system(name) for name in only] if only else s.systems
        kept = None if records is None else Path(records).resolve()
        folder = ComparisonFolder(s, path, kept)
        folder.import_modules()
        check(folder)
        if not score_only:
            check_data(folder, systems)
        with lock_folder(path):
            remove_leftovers(path.resolve())
            restore_all(folder)
            open_folder(folder)
            failed: dict[str, str] = {}
            if not score_only:
                deadline = None if minutes is None else time.monotonic() + 60 * minutes
                failed = do_runs(folder, systems, deadline)
                failed = failed or do_examinations(folder, systems, deadline)
            keep_all(folder)
            result = summarize(folder, command)
            result_files.write_all(result, path)
        if failed:
            raise IncompleteError(failed)
        return result


def open_folder(folder: ComparisonFolder) -> None:
    """Checks the folder, and writes the files that all runs need.

    Raises:
        DifferentSettingsError: a run has other settings.
    """
    for system in folder.settings.systems:
        runs = folder.system_folder(system)
        if has_begun(runs):
            saved = read_json(runs / SETTINGS)
            if found := differences_of(saved, folder.settings_of(system)):
                raise DifferentSettingsError(runs, found)
    subwords = folder.settings.vocabulary.subwords
    size, own = folder.vocabulary_size(), folder.tokenizer
    prepare_vocabulary(folder.path, folder.corpus, size, subwords, own)
    check_vocabulary(folder)
    write_json(folder.path / SETTINGS, {"precision": folder.precision})
    write(folder.path / FILE, folder.settings.text.encode())


def check_vocabulary(folder: ComparisonFolder) -> None:
    """Raises `ValueError` if runs have another vocabulary than the folder."""
    own = file_entry(folder.path / TOKENIZER)["sha256"]
    for run in folder.runs():
        settings = run.path / CONFIG
        if settings.is_file() and read_json(settings).get("tokenizer", own) != own:
            raise ValueError(
                f"{run.name} has another vocabulary than the folder: remove it, or its "
                f"record, and it is trained again. Received: {folder.path}"
            )


def do_runs(
    folder: ComparisonFolder, systems: Sequence[SystemSettings], deadline: float | None
) -> dict[str, str]:
    """Trains missing runs in parallel, and translates."""
    s = folder.settings
    # The first runs of all systems come first, so that early results compare all.
    runs = sorted(folder.runs(systems), key=lambda run: s.seeds.index(run.seed))
    missing = [run for run in runs if not run.has_translated(*s.translated)]
    for system in systems:
        runs_of_system = folder.system_folder(system)
        if not has_begun(runs_of_system):
            write_json(runs_of_system / SETTINGS, folder.settings_of(system))
    jobs = [
        Job(run.name, partial(do_run, run), run.path.with_name(f"{run.path.name}.log"))
        for run in missing
    ]
    return run_jobs(jobs, "runs", len(runs), s.run.at_once, s.run.threads, deadline)


def do_examinations(
    folder: ComparisonFolder, systems: Sequence[SystemSettings], deadline: float | None
) -> dict[str, str]:
    """Measures speeds and makes analyses, one system after the other.

    Nothing else runs while speed is measured.
    """
    jobs = [
        Job(
            f"{system.name}: speed and analyses",
            partial(do_examination, folder, system),
            folder.system_folder(system) / "examination.log",
        )
        for system in systems
        if not is_examined(folder, system)
    ]
    threads = folder.settings.run.threads
    return run_jobs(jobs, "systems examined", len(systems), 1, threads, deadline)


def check(folder: ComparisonFolder) -> None:
    """Check that all systems can be built, all data read, and all scores computed.

    Raises:
        ValueError: something cannot; the message says what.
    """
    for system in folder.settings.systems:
        check_system(folder, system)
    folder.corpus.files("train")
    s = folder.settings
    for test in s.translated:
        check_test_set(folder, test)
    for metric in s.scores.metrics:
        make_metric(metric, s.scores.tokenize, s.corpus.target)


def check_system(folder: ComparisonFolder, system: SystemSettings) -> None:
    """Check that a system can be built and trained, without allocating arrays.

    Raises:
        ValueError: it cannot; the message has the system and the reason.
    """
    try:
        preset = get(system.preset)
        tasks.get(folder.settings.corpus.task).check(preset, system.preset)
        preset.count(folder.vocabulary_size(), **folder.options(system))
        _, settings = training_settings(folder, system)
        TrainingConfig(**preset_settings(preset) | settings)
    except (ValueError, TypeError, OSError) as error:
        raise ValueError(f"System {system.name!r} does not build: {error}") from error


def check_test_set(folder: ComparisonFolder, test: TestSettings) -> None:
    """Check that there are sentences to translate, each with a reference.

    Raises:
        ValueError: there are not; the message has the test set and the reason.
    """
    try:
        sides = folder.pairs(test)
    except ValueError as error:
        raise ValueError(f"Test set {test.name!r}: {error}") from error
    for name, texts in zip(("sources", "references"), sides, strict=True):
        if not any(map(str.strip, texts)):
            raise ValueError(f"Test set {test.name!r} has no {name}.")


def has_begun(runs: Path) -> bool:
    """Whether a run of a system has begun to train."""
    return any(runs.glob(f"seed-*/{CONFIG}"))


def write_json(path: Path, value: Any) -> None:
    """Writes a value as JSON."""
    write(path, f"{json.dumps(value, indent=1)}\n".encode())
