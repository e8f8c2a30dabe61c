"""The loop of a run: periods of updates by Keras' `fit`, validations, the end."""

import dataclasses
import importlib.util
import re
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants import backend
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.data.model_folders import save_model
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.training.averaging import CheckpointAverager
from keras_attnvariants.training.callbacks import JsonLinesLogger
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.training.callbacks import StateSaver
from keras_attnvariants.training.callbacks import StepCounter
from keras_attnvariants.training.config import TrainingConfig
from keras_attnvariants.training.limit import TimeIsUp
from keras_attnvariants.training.moving_average import MovingAverage
from keras_attnvariants.training.progress import ProgressBar
from keras_attnvariants.training.signals import StopRequest
from keras_attnvariants.training.state import LoadedState
from keras_attnvariants.training.state import TrainingState
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.training.team import Team
from keras_attnvariants.training.together import TIME_IS_UP
from keras_attnvariants.training.together import Stopper
from keras_attnvariants.training.together import Together
from keras_attnvariants.training.validation import BestModel
from keras_attnvariants.training.validation import EarlyStopping
from keras_attnvariants.training.validation import ValidationBLEU

# Files and folders in the folder of a run.
BEST = "best"
AVERAGED = "averaged"
CHECKPOINTS = "checkpoints"
LOG = "log.jsonl"


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


class TrainingLoop:
    """A compiled and built model, its data, and the callbacks of its run.

    For most arguments see `train`; `store` holds the states, `request` the signals
    received, `bleu` validates by translation, the model tells `classes` apart, and
    `team` are the processes that train together: the first one writes, and is alone in
    having `bleu` and the caller's `callbacks`.
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizer: Tokenizer | None,
        training_data: Callable[[int], Any],
        run_dir: Path,
        config: TrainingConfig,
        *,
        store: TrainingState,
        request: StopRequest,
        validation_data: Any,
        bleu: ValidationBLEU | None,
        classes: int,
        callbacks: Sequence[keras.callbacks.Callback],
        verbose: int | str,
        team: Team | None = None,
    ) -> None:
        self._team = team = team or Team()
        self._model = model
        self._tokenizer = tokenizer
        self._training_data = training_data
        self._run_dir = run_dir
        self._config = config
        self._validation_data = validation_data
        self._bleu = bleu
        self._verbose = verbose
        self._progress = progress = Progress()
        self._monitor = monitor = _monitor(validation_data, bleu)
        self._counter = StepCounter(progress, classes)
        self._best = BestModel(run_dir / BEST, monitor, progress, tokenizer)
        checkpoints = run_dir / CHECKPOINTS
        self._averager = CheckpointAverager(checkpoints, config.average_last, progress)
        self._moving = None if config.ema is None else MovingAverage()
        self._log = JsonLinesLogger(run_dir / LOG, progress, config.log_every)
        self._callbacks = self._order(callbacks) if team.writes else self._followers()
        stateful = [c for c in self._callbacks if isinstance(c, StatefulCallback)]
        names = unique_names(callback.state_name for callback in stateful)
        self._stateful = dict(zip(names, stateful, strict=True))
        if team.processes > 1:
            together = Together(team, progress, request)
            self._callbacks.append(together)
            request = together.agreed_request
        self._saver = (StateSaver if team.writes else Stopper)(
            store, progress, self._stateful, request, config.save_every, self._moving
        )
        self._callbacks.append(self._saver)

    def start(self, state: LoadedState | None) -> None:
        """Set model, optimizer and callbacks to a saved state, or start a new run."""
        progress, model = self._progress, self._model
        if state is not None:
            for field, value in state.progress.items():
                if field != "callbacks":
                    setattr(progress, field, value)
        if self._team.writes:
            self._restore_callbacks(state)
        if state is None:
            return
        assign_arrays(model.variables, state.variables["model"], "model")
        assign_arrays(
            model.optimizer.variables, state.variables["optimizer"], "optimizer"
        )
        if progress.step < progress.period_end:
            self._counter.metrics = state.variables["metrics"]

    def _restore_callbacks(self, state: LoadedState | None) -> None:
        if state is None:
            self._log.set_state({"bytes": 0, "seconds": 0.0, "tokens": 0.0})
            self._averager.remove_after(0)
            return
        states = state.progress["callbacks"]
        for name, value in zip(unique_names(states), states.values(), strict=True):
            if name in self._stateful:
                self._stateful[name].set_state(value)
            else:
                self._saver.absent[name] = value
        if self._best.best_monitor != self._monitor:
            self._score_best()
        self._averager.remove_after(self._progress.step)

    def run(self) -> None:
        """All remaining updates and validations."""
        progress, config = self._progress, self._config
        if self._team.writes:
            size, local = self._model.count_params(), backend.local_size(self._model)
            print(
                f"{self._run_dir}: {size:,} parameters, "
                + (f"{local:,} of them on each device, " if local < size else "")
                + f"update {progress.step} of {config.steps}."
            )
        for callback in self._callbacks:
            if isinstance(callback, ProgressBar) and callback.steps is None:
                callback.steps = config.steps
        try:
            if progress.validation_pending:
                self._validate()
            elif progress.stopped and self._team.writes:
                print("It was stopped early; more `steps` or `patience` continue it.")
            while progress.step < config.steps and not progress.stopped:
                self._fit()
        except TimeIsUp:
            if self._team.writes:
                self._team.agreed(TIME_IS_UP)

    def finish(self) -> TrainingResult:
        """Write and validate the model with averaged weights."""
        model = self._model
        model.train_function = None  # the caller may `fit` it in another way
        last = to_arrays(model.weights)
        means, count = self._averager.mean() if self._team.writes else (last, 0)
        assign_arrays(model.weights, self._team.shared_arrays(means), "weight")
        if self._team.writes:
            save_model(model, self._run_dir / AVERAGED, self._tokenizer)
        scores = self._scores()
        assign_arrays(model.weights, last, "weight")
        result = self._result(scores.get(self._monitor))
        if self._team.writes:
            self._log.write("averaged", scores)
            self._tell(result, count)
        return TrainingResult(**self._team.agreed(dataclasses.asdict(result)))

    def _result(self, averaged: float | None) -> TrainingResult:
        progress, best = self._progress, self._best
        return TrainingResult(
            progress.step,
            self._monitor,
            best.best,
            best.best_step,
            averaged,
            progress.stopped,
        )

    def _tell(self, result: TrainingResult, count: int) -> None:
        """Says which models there are."""
        averaged = result.averaged
        print(
            f"Best {result.monitor} {result.best:.4g} at update {result.best_step}: "
            f"{self._run_dir / BEST}\n"
            f"Average of the last {count} validated weights"
            + ("" if averaged is None else f", {result.monitor} {averaged:.4g}")
            + f": {self._run_dir / AVERAGED}"
        )

    def _followers(self) -> list[keras.callbacks.Callback]:
        """The callbacks of a process that writes nothing."""
        moving = [] if self._moving is None else [self._moving]
        return [self._counter, *moving]

    def _order(
        self, callbacks: Sequence[keras.callbacks.Callback]
    ) -> list[keras.callbacks.Callback]:
        """All callbacks but the saver; each comes after those whose logs it reads."""
        config = self._config
        ordered: list[keras.callbacks.Callback] = [self._counter]
        if self._moving is not None:
            ordered.append(self._moving)
        if self._bleu is not None:
            ordered.append(self._bleu)
        # Their scores are for the log, as far as there are any.
        ordered += [c for c in callbacks if isinstance(c, ValidationBLEU)]
        callbacks = [c for c in callbacks if not isinstance(c, ValidationBLEU)]
        ordered += [self._best, self._averager]
        if config.patience is not None:
            patience = config.patience * config.validate_every
            ordered.append(EarlyStopping(patience, self._best, self._progress))
        ordered.append(self._log)
        if importlib.util.find_spec("tensorboard"):
            folder = self._run_dir / "tensorboard"
            ordered.append(keras.callbacks.TensorBoard(folder, write_graph=False))
        return ordered + list(callbacks)

    def _fit(self) -> None:
        """One `fit` over all full periods that follow, or over a shorter one.

        A period is shorter after a resume in the middle of it, and at the end.
        """
        step, period = self._progress.step, self._config.validate_every
        left = self._config.steps - step
        epoch = step // period
        if step % period or left < period:
            epochs, updates = epoch + 1, min(period - step % period, left)
        else:
            epochs, updates = epoch + left // period, period
        self._model.fit(
            self._training_data(step * self._config.accumulate),
            validation_data=self._validation_data,
            initial_epoch=epoch,
            epochs=epochs,
            steps_per_epoch=updates,
            shuffle=False,  # the dataset has its own order
            callbacks=self._callbacks,
            verbose=self._verbose,
        )

    def _validate(self) -> None:
        """The validation of a period whose updates were finished before a resume."""
        epoch = (self._progress.step - 1) // self._config.validate_every
        self._model.stop_training = False
        callbacks = keras.callbacks.CallbackList(self._callbacks, model=self._model)
        callbacks.on_train_begin()
        logs = dict(self._progress.logs)
        if self._validation_data is not None:
            logs.update(self._evaluate(callbacks))
        callbacks.on_epoch_end(epoch, logs)
        callbacks.on_train_end(logs)

    def _score_best(self) -> None:
        """Measure the best model so far by the metric that now chooses it.

        Leaves its weights in the model.
        """
        best = self._best
        is_alone = self._team.processes == 1  # the others would not evaluate
        if self._monitor == "loss" or best.best is None or not is_alone:
            best.best = None
            return
        model, _ = load_model(self._run_dir / BEST)
        assign_arrays(self._model.weights, to_arrays(model.weights), "weight")
        best.best = self._scores()[self._monitor]
        print(
            f"The best model is now chosen by {self._monitor}; "
            f"that of update {best.best_step} has {best.best:.4g}."
        )

    def _scores(self) -> dict[str, float]:
        """Validation metrics of the model as it is now."""
        scores = {} if self._validation_data is None else self._evaluate()
        if self._bleu is not None:
            scores["val_bleu"] = self._bleu.score()
        return scores

    def _evaluate(self, callbacks: Any = None) -> dict[str, float]:
        logs = self._model.evaluate(
            self._validation_data, verbose=0, callbacks=callbacks, return_dict=True
        )
        return {f"val_{name}": value for name, value in logs.items()}


def unique_names(names: Iterable[str]) -> list[str]:
    """The names of callbacks in a saved state, each with its number among its like.

    A place among all callbacks that comes first (`05-TimeLimit`) is dropped.
    """
    counts: Counter[str] = Counter()
    unique = []
    for name in names:
        kind = re.sub(r"^\d+-|-\d+$", "", name)
        counts[kind] += 1
        unique.append(f"{kind}-{counts[kind]}")
    return unique


def _monitor(validation_data: Any, bleu: ValidationBLEU | None) -> str:
    """The metric that chooses the best model: BLEU if there is any, then loss."""
    if bleu is not None:
        return "val_bleu"
    return "loss" if validation_data is None else "val_loss"
