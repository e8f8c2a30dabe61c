"""Records of runs: small files with everything of a finished run but its weights.

A record contains the settings, the log, the translations and, for the first seed, the
analyses of a run. With their records, finished runs need not be trained again without
the folder of the comparison, for instance on another machine. The vocabulary is stored
with the records, because one that is learned elsewhere may differ.
"""

import contextlib
import json
import lzma
from collections.abc import Iterator
from pathlib import Path

from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.experiments.comparison_folder import EXAMINATION
from keras_attnvariants.experiments.comparison_folder import RECORD
from keras_attnvariants.experiments.comparison_folder import SETTINGS
from keras_attnvariants.experiments.comparison_folder import ComparisonFolder
from keras_attnvariants.experiments.comparison_folder import Run
from keras_attnvariants.experiments.comparison_folder import write
from keras_attnvariants.training import DifferentSettingsError
from keras_attnvariants.training.run_models import AVERAGED
from keras_attnvariants.training.run_models import BEST
from keras_attnvariants.training.run_models import LOG
from keras_attnvariants.training.run_settings import CONFIG
from keras_attnvariants.training.run_settings import copy_vocabulary
from keras_attnvariants.training.run_settings import differences_of
from keras_attnvariants.utils.files import LARGEST_JSON
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_file
from keras_attnvariants.utils.folders import MANIFEST


def kept_files(run: Run) -> Iterator[Path]:
    """The files in the record of a run; the last says that it has ended."""
    folder = run.folder
    yield from shared_files(run)
    for name in (CONFIG, LOG, f"{BEST}/{MANIFEST}", f"{AVERAGED}/{MANIFEST}"):
        yield run.path / name
    yield from map(run.translation, folder.settings.translated)
    yield run.record_path


def shared_files(run: Run) -> Iterator[Path]:
    """The files that it shares with other runs."""
    folder = run.folder.system_folder(run.system)
    yield run.folder.path / SETTINGS
    yield folder / SETTINGS
    if run.seed == run.folder.settings.seeds[0]:
        yield folder / EXAMINATION


def keep_all(folder: ComparisonFolder) -> None:
    """Writes the records of all runs that have ended, and their vocabulary."""
    for run in folder.runs():
        keep(run)
    if folder.records and any(folder.records.glob(f"*{RECORD}")):
        copy_vocabulary(folder.path, folder.records)


def restore_all(folder: ComparisonFolder) -> None:
    """Writes the files in the records, unless they exist.

    Raises:
        DamagedFolderError, DifferentSettingsError: as for `restore`.
    """
    for run in folder.runs():
        restore(run)
    if folder.records and (folder.records / TOKENIZER).is_file():
        copy_vocabulary(folder.records, folder.path)


def keep(run: Run) -> None:
    """Writes the record of a run, if it has ended and the comparison keeps records.

    Translations of test sets that the comparison no longer has stay in the record.
    """
    path = run.kept
    if path is None or not run.has_translated(*run.folder.settings.translated):
        return
    texts: dict[Path, str] = {}
    with contextlib.suppress(FileNotFoundError, DamagedFolderError):
        texts = read(run, path)
    for file in kept_files(run):
        if file.is_file():
            texts[file] = file.read_text("utf-8")
    named = {k.relative_to(run.folder.path).as_posix(): v for k, v in texts.items()}
    content = lzma.compress(json.dumps(named).encode())
    if not path.is_file() or path.read_bytes() != content:
        write(path, content)


def restore(run: Run) -> None:
    """Writes the files in the record of a run, unless the run has ended here.

    They replace the files of an unfinished run.

    Raises:
        DamagedFolderError: the file is not a record of the run.
        DifferentSettingsError: it is the record of a run with other settings.
    """
    path = run.kept
    if path is None or not path.is_file() or run.record_path.is_file():
        return
    texts, shared = read(run, path), [*shared_files(run)]
    common, settings = shared[:2]
    if not common.is_file():  # the precision, which all runs share
        write(common, texts[common].encode())
    kept = json.loads(texts[settings])
    if found := differences_of(kept, run.folder.settings_of(run.system)):
        raise DifferentSettingsError(path, found)
    for file in kept_files(run):
        if file in texts and not (file in shared and file.is_file()):
            write(file, texts[file].encode())


def read(run: Run, path: Path) -> dict[Path, str]:
    """The texts in the record of a run, by their files.

    Raises:
        DamagedFolderError: the file is not a record of the run.
    """
    content = read_file(path, largest=LARGEST_JSON)
    try:
        texts = json.loads(lzma.LZMADecompressor().decompress(content, LARGEST_JSON))
        found = {run.folder.path / str(k): str(text) for k, text in texts.items()}
        precision, settings, *_ = shared_files(run)
        for file in (precision, settings, run.record_path):
            json.loads(found.get(file, "")).keys()
        return found
    except (lzma.LZMAError, ValueError, AttributeError) as error:
        raise DamagedFolderError(
            f"This is not a record of {run.name} ({error}): restore it from a copy, or "
            f"remove it and train the run again. Received: {path}"
        ) from error
