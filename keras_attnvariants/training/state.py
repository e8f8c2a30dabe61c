"""The states of a run on disk: everything that the next update depends on."""

import contextlib
import errno
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import NamedTuple
from typing import TypeVar

import keras
import numpy as np
from keras import ops

from keras_attnvariants.backend import local_value
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import read_npz
from keras_attnvariants.utils.folders import FolderWriter
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import names_in
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.folders import remove_leftovers

T = TypeVar("T")

VARIABLES = "variables.npz"
PROGRESS = "progress.json"


# Errors of a full disk, an exhausted quota and a file that is too large.
DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class NonFiniteError(FloatingPointError):
    """A loss or a variable is NaN or infinite."""


class StateWriteError(OSError):
    """The disk is full; the last state is still there."""


class LoadedState(NamedTuple):
    """A state that `TrainingState.load_latest` returns.

    Attributes:
        variables: arrays by group, in the order in which they were saved.
        progress: the JSON object that was saved with them.
    """

    variables: dict[str, list[np.ndarray]]
    progress: dict[str, Any]


class TrainingState:
    """The last two states of a run, each a folder that is complete or absent.

    A state holds arrays in their own dtypes (`variables.npz`, no pickle),
    and a JSON value (`progress.json`), under a manifest with sha256. States are
    numbered in the order of writing; the last two good ones are kept.

    Args:
        directory: folder of the states, created when the first is saved.

    Example:

    >>> import tempfile
    >>> store = TrainingState(tempfile.mkdtemp())
    >>> _ = store.save({"model": [np.arange(3)]}, {"step": 7})
    >>> store.load_latest().progress
    {'step': 7}
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._last_good: Path | None = None

    def paths(self) -> list[Path]:
        """Folders of all states on disk, oldest first."""
        return numbered(self.directory, "state")

    def save(
        self, variables: Mapping[str, Sequence[Any]], progress: Mapping[str, Any]
    ) -> Path:
        """Writes one more state, then removes all but it and the last good one.

        Args:
            variables: arrays or Keras variables, by group.
            progress: a JSON value, with the number of updates done under `"step"`.

        Returns:
            The folder of the new state.

        Raises:
            NonFiniteError: a floating-point array is not finite; nothing is written.
            StateWriteError: the disk is full. The states on disk are as before.
        """
        arrays = {group: to_arrays(values) for group, values in variables.items()}
        for group, values in arrays.items():
            check_finite(values, f"{group} variable")
        paths = self.paths()
        path = self.directory / f"state-{number_of(paths[-1]) + 1 if paths else 1:08d}"
        with clear_full_disk(self.directory.parent), new_folder(path) as folder:
            write_arrays(folder, VARIABLES, arrays)
            folder.write_json(PROGRESS, progress)
        for old in paths:
            if old != self._last_good:
                shutil.rmtree(old, ignore_errors=True)
        self._last_good = path
        return path

    def load_latest(self) -> LoadedState | None:
        """The newest state that is intact, or `None` if none was ever saved.

        A line on standard error names each damaged state that is skipped.

        Raises:
            DamagedFolderError: there are states, and all are damaged.
        """
        remove_leftovers(self.directory)
        paths = self.paths()
        consequence = "using the state before it"
        for path, state in intact(reversed(paths), read_state, consequence):
            self._last_good = path
            return state
        if paths:
            raise DamagedFolderError(
                "every saved state is damaged; start again in an empty folder. "
                f"Received: {self.directory}"
            )
        return None


@contextlib.contextmanager
def clear_full_disk(run_dir: Path) -> Iterator[None]:
    """Context in which the error of a full disk names the folder and the remedy."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_FULL_ERRORS or isinstance(error, StateWriteError):
            raise
        raise StateWriteError(
            error.errno,
            f"{run_dir} could not be written ({error.strerror}); free some space and "
            "give the same command again: the run continues from its last state",
        ) from error


def numbered(directory: Path, kind: str) -> list[Path]:
    """Folders such as `state-00000007`, for the kind `"state"`, in order of number.

    Raises:
        NotPlainFileError: the folder that they are in is a link.
    """
    found = [name for name in names_in(directory) if name.startswith(f"{kind}-")]
    return [directory / name for name in found if name[len(kind) + 1 :].isdecimal()]


def number_of(path: Path) -> int:
    """The number in the name of such a folder."""
    return int(path.name.rpartition("-")[2])


def intact(
    paths: Iterable[Path], read: Callable[[Path], T], consequence: str
) -> Iterator[tuple[Path, T]]:
    """Folders that have not changed since they were written, each with its content.

    A line on standard error names each of the others.

    Args:
        paths: folders with manifests.
        read: reads one, or raises `DamagedFolderError`.
        consequence: what happens to damaged ones, for the line.

    Yields:
        Each folder that is intact, and what was read.
    """
    for path in paths:
        try:
            content = read(path)
        except DamagedFolderError as error:
            print(f"{path} is damaged ({error}); {consequence}.", file=sys.stderr)
        else:
            yield path, content


def read_state(path: Path) -> LoadedState:
    """The state in a folder that `TrainingState.save` wrote.

    Raises:
        DamagedFolderError: a file of it is not what was written.
    """
    check_folder(path, (VARIABLES, PROGRESS))
    progress = read_json(path / PROGRESS)
    if not isinstance(progress, dict) or type(progress.get("step")) is not int:
        raise DamagedFolderError(f"{PROGRESS} has no number of updates")
    return LoadedState(read_arrays(path / VARIABLES), progress)


def to_arrays(variables: Sequence[Any]) -> list[np.ndarray]:
    """NumPy copies of Keras variables or arrays, in their own dtypes."""
    return [
        ops.convert_to_numpy(local_value(variable))
        if isinstance(variable, keras.Variable)
        else np.asarray(variable)
        for variable in variables
    ]


def check_finite(arrays: Sequence[np.ndarray], name: str) -> None:
    """Raises if a number is NaN or infinite.

    Raises:
        NonFiniteError: says which array, by `name` and index.
    """
    for index, array in enumerate(arrays):
        if is_floating(array.dtype) and not np.isfinite(array).all():
            raise NonFiniteError(f"{name} {index} of shape {array.shape} is not finite")


def write_arrays(
    folder: FolderWriter, name: str, arrays: Mapping[str, Sequence[np.ndarray]]
) -> None:
    """Writes grouped arrays as one `.npz` file, which `read_arrays` reads bit by bit.

    NumPy's format knows no bfloat16: such arrays are stored as bytes, and their dtype
    as the last part of their key `group/index/dtype`.
    """
    entries: dict[str, Any] = {
        f"{group}/{index:06d}/{array.dtype.name}": array
        for group, values in arrays.items()
        for index, array in enumerate(values)
    }
    with folder.open(name) as file:
        np.savez(file, **entries)


def read_arrays(path: Path) -> dict[str, list[np.ndarray]]:
    """Arrays by group, as `write_arrays` was given them; other groups have none.

    Raises:
        DamagedFolderError: the file holds something else.
    """
    groups = defaultdict[str, list[np.ndarray]](list)
    for key, array in sorted(read_npz(path).items()):
        try:
            group, _, dtype = key.rsplit("/", 2)
            groups[group].append(array.view(dtype))
        except (ValueError, TypeError) as error:
            raise DamagedFolderError(f"{path.name} holds no arrays of a run") from error
    return groups


def assign_arrays(
    variables: Sequence[keras.Variable], arrays: Sequence[np.ndarray], name: str
) -> None:
    """Sets variables from arrays in the same order.

    Raises:
        ValueError: number or shapes differ: the state belongs to another model.
    """
    shapes = [tuple(variable.shape) for variable in variables]
    if (found := [array.shape for array in arrays]) != shapes:
        raise ValueError(
            f"the {name} variables on disk must be those of this run, of shapes "
            f"{shapes!s:.200}. Received: {found!s:.200}"
        )
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)


def is_floating(dtype: np.dtype) -> bool:
    """Whether a dtype holds floating-point numbers, bfloat16 and the like included."""
    return dtype.kind in "fV"
