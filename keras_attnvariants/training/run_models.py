"""The models of a run: the best one, and the one with averaged weights."""

import dataclasses
import math
import os
import shutil
import sys
from collections.abc import Callable
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_attnvariants.data.model_folders import LoadedModel
from keras_attnvariants.data.model_folders import read_model
from keras_attnvariants.data.model_folders import save_model
from keras_attnvariants.data.tasks import higher_is_better
from keras_attnvariants.data.tasks import monitors
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.training.callbacks import DataclassCallback
from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.training.progress import read_log
from keras_attnvariants.training.state import intact
from keras_attnvariants.training.state import is_floating
from keras_attnvariants.training.state import number_of
from keras_attnvariants.training.state import numbered
from keras_attnvariants.training.state import read_arrays
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.training.state import write_arrays
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.folders import remove_leftovers

# Files and folders in the folder of a run.
BEST = "best"
AVERAGED = "averaged"
CHECKPOINTS = "checkpoints"
LOG = "log.jsonl"

WEIGHTS = "weights.npz"


@dataclasses.dataclass(eq=False)
class CheckpointAverager(DataclassCallback):
    """Keeps the weights of the last validated steps, to average them at the end.

    Args:
        directory: folder of the weights, one subfolder a step.
        last: number of steps that are kept.
        progress: where the run stands.
        count: number of steps that `mean` averaged when it was last called.
    """

    directory: Path
    last: int
    progress: Progress
    count: int = 0

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        write_weights(self.directory / f"step-{self.progress.step:09d}", self.model)
        for old in numbered(self.directory, "step")[: -self.last]:
            shutil.rmtree(old)

    def remove_after(self, step: int) -> None:
        """Removes the weights of steps that a resumed run will repeat."""
        remove_leftovers(self.directory)
        for path in numbered(self.directory, "step"):
            if number_of(path) > step:
                shutil.rmtree(path)

    def mean(self) -> list[np.ndarray]:
        """The mean of the weights kept.

        The mean is taken in float64. Weights of other than floating-point dtypes
        are taken from the last step. Steps with damaged weights are left out, with a
        line on standard error for each.

        Raises:
            DamagedFolderError: none is left.
        """
        self.count, totals = 0, None
        arrays: list[np.ndarray] = []
        paths = numbered(self.directory, "step")
        for _, arrays in intact(paths, read_weights, "left out"):
            wide = [a.astype("float64") if is_floating(a.dtype) else a for a in arrays]
            totals = wide if totals is None else list(map(np.add, totals, wide))
            self.count += 1
        if totals is None:
            raise DamagedFolderError(
                "no validated weights are left to average; restore them from a copy, "
                f"or use the model of the best validation. Received: {self.directory}"
            )
        return [
            (total / self.count).astype(a.dtype) if is_floating(a.dtype) else a
            for total, a in zip(totals, arrays, strict=True)
        ]


@dataclasses.dataclass(eq=False)
class BestModel(DataclassCallback, StatefulCallback):
    """Keeps the model of the best validation as a model folder.

    Training ends when no validation was better for some periods. Unlike Keras'
    `EarlyStopping`, it counts from the step of the best model, over `fit` calls and
    resumes.

    Args:
        directory: folder that `save_model` writes.
        monitor: entry of the logs; see `higher_is_better` of
            `keras_attnvariants.data.tasks`.
        progress: where the run stands.
        tokenizer: saved with the model, or `None`.
        patience: updates without improvement after which training ends; `None` for no
            limit.
        best: best value so far, or `None`.
        best_step: step of that value.
    """

    directory: Path
    monitor: str
    progress: Progress
    tokenizer: Tokenizer | None
    patience: int | None = None
    best: float | None = None
    best_step: int = 0

    def get_state(self) -> dict[str, Any]:
        return {
            "monitor": self.monitor,
            "best": self.best,
            "best_step": self.best_step,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        best = state["best"]
        self.best = None if best is None else float(best)
        self.best_step = int(state["best_step"])
        problem = "" if self.directory.is_dir() else "is missing"
        if state["monitor"] != self.monitor:
            problem = f"was chosen by {state['monitor']}, not {self.monitor}"
        if self.best is not None and problem:
            print(
                f"{self.directory} {problem}; the next validation writes it again.",
                file=sys.stderr,
            )
            self.best = None

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        value, step = (logs or {})[self.monitor], self.progress.step
        if self._is_better(value):
            save_model(self.model, self.directory, self.tokenizer)
            self.best, self.best_step = float(value), step
        if self.patience is not None and step - self.best_step >= self.patience:
            self.model.stop_training = True

    def _is_better(self, value: float) -> bool:
        if self.best is None or not math.isfinite(value):
            return math.isfinite(value)
        is_higher = higher_is_better(self.monitor)
        return value > self.best if is_higher else value < self.best


def write_weights(path: Path, model: keras.Model) -> None:
    """Writes the weights of a model into a new folder."""
    with new_folder(path) as folder:
        write_arrays(folder, WEIGHTS, {"model": to_arrays(model.weights)})


def read_weights(path: Path) -> list[np.ndarray]:
    """The weights of a model, from the folder that `write_weights` wrote.

    Raises:
        DamagedFolderError: a file of it is not what was written.
    """
    check_folder(path, (WEIGHTS,))
    return read_arrays(path / WEIGHTS)["model"]


def better_event(log: Path) -> dict[str, Any] | None:
    """The log record of the better model of a run.

    Returns:
        The record of a period, or of the last average; `None` for a run without an
        average so far, or without a validation that counts.
    """
    events = read_log(log)
    averages = [event for event in events if event["event"] == "averaged"]
    # A run that was continued after its end has an average of old weights.
    if not averages:
        return None
    found = [averages[-1], *(e for e in events if e["event"] == "period")]
    for name in monitors():
        best: Callable[..., dict[str, Any]] = max if higher_is_better(name) else min
        # A score that the average lacks has not chosen the best model.
        if name in averages[-1]:
            known = [event for event in found if event.get(name) is not None]
            return best(known, key=itemgetter(name)) if known else None
    return averages[-1]


def better_model(log: Path) -> str:
    """The better model of a run in validation, `"best"` or `"averaged"`."""
    event = better_event(log)
    return AVERAGED if event and event["event"] == "averaged" else BEST


def load_run(run_dir: str | os.PathLike[str]) -> LoadedModel:
    """Loads the better model of a run: that of the best validation, or the average.

    While weights still improve quickly, their average is worse than the last ones.

    Args:
        run_dir: folder of a run of `train` or `train_preset`. It need not have ended.

    Returns:
        A `LoadedModel`, that is `(model, tokenizer)`.

    Raises:
        FileNotFoundError: the folder holds no run, or one without a validated model.
        ValueError: a file is not the one that was saved.
    """
    log = Path(run_dir) / LOG
    if not log.is_file():
        raise FileNotFoundError(
            f"`run_dir` must be the folder of a run, with {LOG}. Received: {run_dir}"
        )
    return read_model(Path(run_dir) / better_model(log))
