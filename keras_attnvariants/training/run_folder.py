"""The folder of a run: all that a training writes, and reads when it is resumed."""

import dataclasses
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from pydantic import TypeAdapter

from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.data.model_folders import save_model
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.training.callbacks import StateSaver
from keras_attnvariants.training.callbacks import StopRequest
from keras_attnvariants.training.progress import JsonLinesLogger
from keras_attnvariants.training.run_models import AVERAGED
from keras_attnvariants.training.run_models import BEST
from keras_attnvariants.training.run_models import CHECKPOINTS
from keras_attnvariants.training.run_models import LOG
from keras_attnvariants.training.run_models import BestModel
from keras_attnvariants.training.run_models import CheckpointAverager
from keras_attnvariants.training.run_settings import CONFIG
from keras_attnvariants.training.run_settings import MACHINE
from keras_attnvariants.training.run_settings import STATES
from keras_attnvariants.training.run_settings import check_same_run
from keras_attnvariants.training.run_settings import read_settings
from keras_attnvariants.training.state import LoadedState
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.training.time_limits import TimeLimit
from keras_attnvariants.training.training_loop import TrainingLoop
from keras_attnvariants.training.validation import ValidationScore
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import not_plain_file
from keras_attnvariants.utils.files import replace_file
from keras_attnvariants.utils.folders import remove_leftovers
from keras_attnvariants.utils.machine import hardware
from keras_attnvariants.utils.progress import clock
from keras_attnvariants.utils.records import grouped


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """The result of a run.

    Attributes:
        step: updates done.
        monitor: the metric that chose the best model.
        best: its best value, or None if it was not measured since the metric changed.
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


@dataclasses.dataclass
class RunFolder:
    """Settings, states, log and models of one run.

    Args:
        path: the folder, which this process has locked.
        loop: trains the model.
        tokenizer: the tokenizer of the model, or `None`.
        given: callbacks of the caller.
        request: says whether the training is to stop.
    """

    path: Path
    loop: TrainingLoop
    tokenizer: Tokenizer | None
    given: Sequence[keras.callbacks.Callback]
    request: StopRequest

    def __post_init__(self) -> None:
        path, config, progress = self.path, self.loop.config, self.loop.progress
        self._store = TrainingState(path / STATES)
        self._stateful: dict[str, StatefulCallback] = {}
        self._limit = next((c for c in self.given if isinstance(c, TimeLimit)), None)
        self._scores = [c for c in self.given if isinstance(c, ValidationScore)]
        self._score = next((each for each in self._scores if each.share is None), None)
        monitor = "loss" if self.loop.validation_data is None else "val_loss"
        self._best = BestModel(
            path / BEST,
            monitor if self._score is None else self._score.name,
            progress,
            self.tokenizer,
            config.patience and config.patience * config.validate_every,
        )
        checkpoints = path / CHECKPOINTS
        self._averager = CheckpointAverager(checkpoints, config.average_last, progress)
        self._log = JsonLinesLogger(path / LOG, progress, config.log_every)

    def open(
        self, settings: dict[str, Any]
    ) -> tuple[LoadedState | None, list[keras.callbacks.Callback]]:
        """Writes settings and tokenizer, and returns where the run stands.

        Args:
            settings: the settings of this training.

        Returns:
            The state to continue from, `None` for a new run; and the callbacks of the
            run, with their states restored.

        Raises:
            DifferentSettingsError: the folder holds a run with other settings.
        """
        saved = read_settings(self.path)
        if self._store.paths():
            check_same_run(self.path, saved, settings)
        state, callbacks = self._store.load_latest(), self._order()
        try:
            if state is not None:
                text = json.dumps(state.progress)
                TypeAdapter(Progress).validate_json(text, strict=True)
                if self._is_longer(saved, settings, state):
                    state.progress["stopped"] = False
            self._restore(state, callbacks)
        except DamagedFolderError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DamagedFolderError(
                f"The last state of {self.path} does not say where the run stands: "
                "remove it, and the one before is used. Received: "
                f"{' '.join(str(error).split())}"
            ) from error
        text = json.dumps(settings | {MACHINE: hardware()}, indent=2) + "\n"
        replace_file(self.path / CONFIG, text.encode())
        if self.tokenizer is not None:
            replace_file(self.path / TOKENIZER, self.tokenizer.model_bytes)
        remove_leftovers(self.path.resolve())
        self._print_start(state)
        return state, callbacks

    def averages(self) -> list[np.ndarray]:
        """The mean of the last validated weights."""
        return self._averager.mean()

    def finish(self, scores: dict[str, float]) -> TrainingResult:
        """Writes the model, whose weights are now the averages, and returns the result.

        Args:
            scores: its validation metrics.
        """
        best, progress = self._best, self.loop.progress
        save_model(self.loop.model, self.path / AVERAGED, self.tokenizer)
        if self._score is not None:
            scores = scores | {self._score.name: self._score.score()}
        self._log.write("averaged", scores)
        averaged = scores.get(best.monitor)
        value = "model" if best.best is None else f"{best.monitor} {best.best:.4g}"
        print(
            f"Best {value} at update {best.best_step}: {self.path / BEST}\n"
            f"Average of the last {self._averager.count} validated weights"
            + ("" if averaged is None else f", {best.monitor} {averaged:.4g}")
            + f": {self.path / AVERAGED}"
        )
        return TrainingResult(
            progress.step,
            best.monitor,
            best.best,
            best.best_step,
            averaged,
            progress.stopped,
        )

    def _is_longer(
        self, saved: dict[str, Any], settings: dict[str, Any], state: LoadedState
    ) -> bool:
        """Whether a run that was stopped early is to go on from its last state."""
        if any(
            saved["training"].get(name) != settings["training"][name]
            for name in ("steps", "patience")
        ):
            return True
        time = state.progress["callbacks"].get(f"{TimeLimit.__name__}-1", {})
        ended = time.get("ended")
        return ended is not None and (self._limit is None or self._limit.limit > ended)

    def _print_start(self, state: LoadedState | None) -> None:
        model, steps = self.loop.model, self.loop.config.steps
        size = f"{model.count_params():,} parameters in {model.dtype_policy.name}"
        step = 0 if state is None else state.progress["step"]
        time = ""
        if state is not None and self._limit is not None:
            spent, limit = self._limit.seconds, self._limit.limit
            left = clock(max(limit - spent, 0.0))
            time = f", {clock(spent)} of {clock(limit)} spent, {left} left"
        print(f"{self.path}: {size}, update {step} of {steps}{time}.")
        if state is not None and state.progress["stopped"]:
            print("It was stopped early; more `steps`, `patience` or time continue it.")

    def _order(self) -> list[keras.callbacks.Callback]:
        """All callbacks; each comes after those whose logs it reads."""
        others = [c for c in self.given if c not in self._scores]
        if importlib.util.find_spec("tensorboard"):
            folder = self.path / "tensorboard"
            if links := [p for p in (folder, *folder.rglob("*")) if p.is_symlink()]:
                raise not_plain_file(links[0])
            others.insert(0, keras.callbacks.TensorBoard(folder, write_graph=False))
        every = self.loop.config.save_every
        saver = StateSaver(self.loop.progress, self.request, every, self._save)
        return [*self._scores, self._best, self._averager, self._log, *others, saver]

    def _restore(
        self, state: LoadedState | None, callbacks: Sequence[keras.callbacks.Callback]
    ) -> None:
        """Restores the states of the callbacks."""
        stateful = [c for c in callbacks if isinstance(c, StatefulCallback)]
        for name, group in grouped(stateful, "state_name").items():
            for number, callback in enumerate(group, start=1):
                self._stateful[f"{name}-{number}"] = callback
        if state is None:
            self._log.set_state({"bytes": 0, "seconds": 0.0})
        saved = {} if state is None else state.progress["callbacks"]
        for name, callback in self._stateful.items():
            if name in saved:
                callback.set_state(saved[name])
        self._averager.remove_after(state.progress["step"] if state else 0)

    def _save(self) -> None:
        """Saves a state, including those of callbacks that this call leaves out."""
        self.loop.averages.restore_weights()
        progress = self.loop.progress
        progress.callbacks |= {k: c.get_state() for k, c in self._stateful.items()}
        path = self._store.save(self.loop.variables(), dataclasses.asdict(progress))
        if self.request.number:
            print(f"\nStopped by a signal at step {progress.step}; saved {path}.")
