"""The folder of a run: all that a training writes, and reads when it is resumed."""

import contextlib
import dataclasses
import errno
import importlib.util
import json
from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_attnvariants import backend
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.data.model_folders import save_model
from keras_attnvariants.training.averaging import CheckpointAverager
from keras_attnvariants.training.callbacks import JsonLinesLogger
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.training.callbacks import StateSaver
from keras_attnvariants.training.loop import Training
from keras_attnvariants.training.loop import TrainingLoop
from keras_attnvariants.training.settings import CONFIG
from keras_attnvariants.training.settings import STATES
from keras_attnvariants.training.settings import check_same_run
from keras_attnvariants.training.signals import StopRequest
from keras_attnvariants.training.state import LoadedState
from keras_attnvariants.training.state import StateWriteError
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.training.validation import BestModel
from keras_attnvariants.training.validation import EarlyStopping
from keras_attnvariants.training.validation import ValidationBLEU
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.folders import remove_leftovers

# Files and folders in the folder of a run.
BEST = "best"
AVERAGED = "averaged"
CHECKPOINTS = "checkpoints"
LOG = "log.jsonl"

# The errors of a disk, a quota and a file that are full.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """How a run ended.

    Attributes:
        step: updates done.
        monitor: the metric that chose the best model.
        best: its best value.
        best_step: the step of that value.
        averaged: its value with averaged weights, or None without validation.
        stopped_early: whether `patience` or another callback ended the run.
    """

    step: int
    monitor: str
    best: float | None
    best_step: int
    averaged: float | None
    stopped_early: bool


class RunFolder:
    """Settings, states, log and models of one run.

    Args:
        path: the folder, which this process has locked.
        training: what is trained.
        loop: trains it.
        request: whether the training is to stop.
    """

    def __init__(
        self,
        path: Path,
        training: Training,
        loop: TrainingLoop,
        request: StopRequest,
    ) -> None:
        self.path = path
        self._training = training
        self._loop = loop
        self._request = request
        self._store = TrainingState(path / STATES)
        config, progress = training.config, loop.progress
        self._bleu = _validation_bleu(training)
        self._monitor = "val_loss" if self._bleu is None else "val_bleu"
        if self._bleu is None and training.validation_data is None:
            self._monitor = "loss"
        self._best = BestModel(path / BEST, self._monitor, progress, training.tokenizer)
        checkpoints = path / CHECKPOINTS
        self._averager = CheckpointAverager(checkpoints, config.average_last, progress)
        self._log = JsonLinesLogger(path / LOG, progress, config.log_every)

    def open(
        self, saved: dict[str, Any], settings: dict[str, Any], resume: bool
    ) -> LoadedState | None:
        """Write the settings and the tokenizer; return the state to continue from.

        Args:
            saved: settings of the run that the folder holds, or an empty dict.
            settings: those of this training.
            resume: whether it may hold a run.

        Raises:
            ValueError: it must not hold one, or holds one with other settings.
        """
        if self._store.paths():
            if not resume:
                raise ValueError(
                    "`run_dir` must not hold a run: pass `resume=True` to continue it, "
                    f"or choose another folder. Received: {self.path}"
                )
            check_same_run(self.path, saved, settings)
        state = self._store.load_latest()
        if state is not None and any(
            saved["training"].get(name) != settings["training"][name]
            for name in ("steps", "patience")
        ):
            state.progress["stopped"] = False
        text = json.dumps(settings, indent=2) + "\n"
        write_file(self.path / CONFIG, text.encode())
        if self._training.tokenizer is not None:
            write_file(self.path / TOKENIZER, self._training.tokenizer.model_bytes)
        remove_leftovers(self.path)
        return state

    def start(
        self,
        state: LoadedState | None,
        given: Sequence[keras.callbacks.Callback],
    ) -> list[keras.callbacks.Callback]:
        """Say where the run stands; return the callbacks that write, as they were.

        May leave other weights in the model, so its state is loaded afterwards.

        Args:
            state: that of the run; `None` for a new one.
            given: callbacks of the caller.
        """
        self._tell_start(state)
        ordered = self._order(given)
        stateful = [c for c in ordered if isinstance(c, StatefulCallback)]
        names = unique_names(callback.state_name for callback in stateful)
        by_name = dict(zip(names, stateful, strict=True))
        saver = StateSaver(
            self._loop.progress,
            self._request,
            self._loop.take_out_averages,
            self._store,
            by_name,
            self._training.config.save_every,
        )
        if state is None:
            self._log.set_state({"bytes": 0, "seconds": 0.0, "tokens": 0.0})
            self._averager.remove_after(0)
            return [*ordered, saver]
        for name, value in state.progress["callbacks"].items():
            if name in by_name:
                by_name[name].set_state(value)
            else:
                saver.absent[name] = value
        if self._best.best_monitor != self._monitor:
            self._score_best()
        self._averager.remove_after(state.progress["step"])
        return [*ordered, saver]

    def averages(self) -> list[np.ndarray]:
        """The mean of the last validated weights."""
        return self._averager.mean()

    def finish(self, scores: dict[str, float]) -> TrainingResult:
        """Write the model, whose weights are now the averages, and say how it is.

        Args:
            scores: its validation metrics.
        """
        training, best = self._training, self._best
        save_model(training.model, self.path / AVERAGED, training.tokenizer)
        scores = scores | self._bleu_of_model()
        self._log.write("averaged", scores)
        averaged = scores.get(self._monitor)
        progress = self._loop.progress
        print(
            f"Best {self._monitor} {best.best:.4g} at update {best.best_step}: "
            f"{self.path / BEST}\n"
            f"Average of the last {self._averager.count} validated weights"
            + ("" if averaged is None else f", {self._monitor} {averaged:.4g}")
            + f": {self.path / AVERAGED}"
        )
        return TrainingResult(
            progress.step,
            self._monitor,
            best.best,
            best.best_step,
            averaged,
            progress.stopped,
        )

    def _tell_start(self, state: LoadedState | None) -> None:
        model, steps = self._training.model, self._training.config.steps
        size, local = model.count_params(), backend.local_size(model)
        progress = {"step": 0, "stopped": False} if state is None else state.progress
        print(
            f"{self.path}: {size:,} parameters, "
            + (f"{local:,} of them on each device, " if local < size else "")
            + f"update {progress['step']} of {steps}."
        )
        if progress["stopped"] and not progress["validation_pending"]:
            print("It was stopped early; more `steps` or `patience` continue it.")

    def _order(
        self, given: Sequence[keras.callbacks.Callback]
    ) -> list[keras.callbacks.Callback]:
        """The callbacks, but for the saver; each comes after those whose logs it reads.

        Further scores of BLEU are for the log, as far as there are any.
        """
        config = self._training.config
        ordered: list[keras.callbacks.Callback] = []
        if self._bleu is not None:
            ordered.append(self._bleu)
        ordered += [c for c in given if isinstance(c, ValidationBLEU)]
        ordered += [self._best, self._averager]
        if config.patience is not None:
            patience = config.patience * config.validate_every
            ordered.append(EarlyStopping(patience, self._best, self._loop.progress))
        ordered.append(self._log)
        if importlib.util.find_spec("tensorboard"):
            folder = self.path / "tensorboard"
            ordered.append(keras.callbacks.TensorBoard(folder, write_graph=False))
        return ordered + [c for c in given if not isinstance(c, ValidationBLEU)]

    def _score_best(self) -> None:
        """Measure the best model so far by the metric that now chooses it.

        Leaves its weights in the model.
        """
        best = self._best
        if self._monitor == "loss" or best.best is None:
            best.best = None
            return
        model, _ = load_model(self.path / BEST)
        assign_arrays(self._training.model.weights, to_arrays(model.weights), "weight")
        scores = self._loop.evaluate() | self._bleu_of_model()
        best.best = scores[self._monitor]
        print(
            f"The best model is now chosen by {self._monitor}; "
            f"that of update {best.best_step} has {best.best:.4g}."
        )

    def _bleu_of_model(self) -> dict[str, float]:
        return {} if self._bleu is None else {"val_bleu": self._bleu.score()}


def unique_names(names: Iterable[str]) -> list[str]:
    """The names of callbacks, each with its number among those of its name."""
    counts: Counter[str] = Counter()
    unique = []
    for name in names:
        counts[name] += 1
        unique.append(f"{name}-{counts[name]}")
    return unique


@contextlib.contextmanager
def clear_full_disk(run_dir: Path) -> Iterator[None]:
    """Context in which a full disk is told with the folder, and with what to do."""
    try:
        yield
    except StateWriteError:
        raise
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise StateWriteError(
            error.errno,
            f"{run_dir} could not be written ({error.strerror}); free some space and "
            "give the same command again: the run continues from its last state",
        ) from error


def _validation_bleu(training: Training) -> ValidationBLEU | None:
    translate, texts = training.translate, training.validation_texts
    if translate is None and texts is None:
        return None
    if translate is None or texts is None:
        missing = "translate" if translate is None else "validation_texts"
        raise ValueError(
            "`translate` and `validation_texts` must be given together. "
            f"Received: no `{missing}`"
        )
    return ValidationBLEU(translate, *texts, tokenize=training.config.bleu_tokenize)
