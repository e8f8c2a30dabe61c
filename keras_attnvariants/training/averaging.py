"""Averages of weights: of the last validated steps, and moving ones."""

import re
import shutil
import sys
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.callbacks import StatefulCallback
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.training.state import is_floating
from keras_attnvariants.training.state import read_arrays
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.training.state import write_arrays
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.folders import remove_leftovers

WEIGHTS = "weights.npz"


class CheckpointAverager(StatefulCallback):
    """Keeps the weights of the last validated steps, to average them at the end.

    Args:
        directory: folder of the weights, one subfolder a step.
        last: how many are kept.
        progress: where the run stands.

    Attributes:
        count: of how many steps `mean` has taken the mean.
    """

    def __init__(self, directory: Path, last: int, progress: Progress) -> None:
        super().__init__()
        self.count = 0
        self._directory = directory
        self._last = last
        self._progress = progress

    def get_state(self) -> dict[str, Any]:
        return {"steps": self._steps()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Say which of the weights kept at that state are gone.

        Those that made way for weights of later steps are not missed.
        """
        found = self._steps()
        due = sorted({*state["steps"], *found})[-self._last :]
        missing = [str(step) for step in due if step not in found]
        if missing:
            print(
                f"{self._directory} lacks the weights of steps {', '.join(missing)}; "
                "unless they are restored from a copy before the run ends, the average "
                "leaves them out.",
                file=sys.stderr,
            )

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        path = self._directory / f"step-{self._progress.step:09d}"
        with new_folder(path) as folder:
            write_arrays(folder, WEIGHTS, {"model": to_arrays(self.model.weights)})
        for old in self._paths()[: -self._last]:
            shutil.rmtree(old)

    def remove_after(self, step: int) -> None:
        """Remove the weights of steps that a resumed run will repeat."""
        remove_leftovers(self._directory)
        for path in self._paths():
            if _step(path) > step:
                shutil.rmtree(path)

    def mean(self) -> list[np.ndarray]:
        """The mean of the weights kept.

        The mean is taken in float64. Weights of other than floating-point dtypes
        are taken from the last step. Damaged ones are left out, with a line on standard
        error each.

        Raises:
            DamagedFolderError: none is left.
        """
        self.count, totals, arrays = 0, None, []
        for arrays in self._intact():
            wide = [a.astype("float64") if is_floating(a.dtype) else a for a in arrays]
            totals = wide if totals is None else list(map(np.add, totals, wide))
            self.count += 1
        if totals is None:
            raise DamagedFolderError(
                "no validated weights are left to average; restore them from a copy, "
                f"or use the model of the best validation. Received: {self._directory}"
            )
        return [
            (total / self.count).astype(a.dtype) if is_floating(a.dtype) else a
            for total, a in zip(totals, arrays, strict=True)
        ]

    def _paths(self) -> list[Path]:
        found = self._directory.glob("step-*")
        return sorted(path for path in found if re.fullmatch(r"step-\d+", path.name))

    def _steps(self) -> list[int]:
        return [_step(path) for path in self._paths()]

    def _intact(self) -> Iterator[list[np.ndarray]]:
        for path in self._paths():
            try:
                check_folder(path)
            except DamagedFolderError as error:
                print(f"{path} is damaged ({error}); left out.", file=sys.stderr)
            else:
                yield read_arrays(path / WEIGHTS)["model"]


class MovingAverage(keras.callbacks.Callback):
    """Validates, and saves as the best model, the averages in place of the weights.

    It comes first among the callbacks. Whoever saves the state of the run takes the
    averages out before.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_in = False

    def on_test_begin(self, logs: Logs = None) -> None:
        self._put_in()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self._put_in()  # there may be no validation data

    def take_out(self) -> None:
        """Gives the model its own weights back."""
        if self._is_in:
            self._swap()

    def _put_in(self) -> None:
        if not self._is_in:
            self._swap()

    def _swap(self) -> None:
        optimizer = self.model.optimizer
        # Mixed float16 wraps the optimizer.
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        variables = self.model.trainable_variables, optimizer.averages
        weights, averages = (to_arrays(group) for group in variables)
        assign_arrays(variables[0], averages, "average")
        assign_arrays(variables[1], weights, "weight")
        self._is_in = not self._is_in


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-"))
