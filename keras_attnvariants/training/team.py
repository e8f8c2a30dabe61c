"""The processes of a training: how they agree, and how they notice that one is gone."""

import atexit
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_attnvariants.backend.distribution import Board
from keras_attnvariants.backend.distribution import from_first_process
from keras_attnvariants.training.settings import Difference
from keras_attnvariants.training.settings import DifferentSettingsError
from keras_attnvariants.training.settings import differences_of
from keras_attnvariants.training.state import LoadedState
from keras_attnvariants.utils.aborts import forget_abort
from keras_attnvariants.utils.aborts import tell_abort
from keras_attnvariants.utils.locks import lock_folder

# Seconds between two looks at the others.
BEAT = 1.0
# Seconds without a sign of life after which a process counts as gone.
SILENCE = 20.0
# Seconds that a process which ends waits for the others to know.
GRACE = 5.0
# Seconds that a process has to end by itself once another is gone; fewer than those.
PATIENCE = 2.0
# What processes say that process 0 has left behind.
UNREACHABLE = "process 0 cannot be reached any more"


class ProcessLostError(OSError):
    """Another process of the training has ended."""


class DifferentProcessesError(DifferentSettingsError):
    """The processes of a training were given different settings."""

    def __init__(self, process: int, differences: Sequence[Difference]) -> None:
        self.process = process
        super().__init__(Path(f"process-{process}"), differences)

    def _told(self, received: str) -> str:
        return (
            f"process {self.process} has other settings or data than process 0: give "
            f"all of them the same. Received: {received}"
        )


class Team:
    """The processes that train a model together; often this one alone.

    They call the methods below in the same order.

    Args:
        process: number of this process; number 0 alone writes anything.
        processes: how many there are.

    Attributes:
        ends_together: whether all processes end at the update that they have reached.
    """

    def __init__(self, process: int = 0, processes: int = 1) -> None:
        self.process = process
        self.processes = processes
        self.ends_together = False
        self._count = 0
        self._lost: str | None = None
        self._left = threading.Event()
        self._noticed = threading.Event()
        if processes > 1:
            self._board = Board()
            # JAX aborts all processes that can no longer reach process 0.
            tell_abort(f"Error: {what_to_do(UNREACHABLE)}")
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()

    @property
    def writes(self) -> bool:
        """Whether this is the process that writes."""
        return self.process == 0

    def lock(self, folder: Path) -> contextlib.AbstractContextManager[None]:
        """Context in which nobody outside of the team may write into a folder.

        Raises:
            FolderInUseError: another process does.
        """
        return lock_folder(folder) if self.writes else contextlib.nullcontext()

    def agreed(self, value: Any = None) -> Any:
        """The value, one that JSON can hold, that process 0 gives here."""
        if self.processes == 1:
            return value
        name = self.new_name("agreed")
        if self.writes:
            self._board.put(name, json.dumps(value))
            return value
        return json.loads(self._wait_for(name))

    def check_same(self, settings: Mapping[str, Any]) -> None:
        """Compares settings, which JSON can hold, with those of all other processes.

        Raises:
            DifferentProcessesError: names what differs, in all processes.
        """
        if self.processes == 1:
            return
        name = self.new_name("same")
        self._board.put(f"{name}/{self.process}", json.dumps(settings, default=repr))
        numbers = range(self.processes)
        found = [json.loads(self._wait_for(f"{name}/{i}")) for i in numbers]
        for number in numbers:
            if different := differences_of(found[0], found[number]):
                raise DifferentProcessesError(number, different)

    def shared_state(self, state: LoadedState | None) -> LoadedState | None:
        """The state that process 0 has loaded."""
        if self.processes == 1:
            return state
        kinds: Any = state and {
            group: [(array.shape, array.dtype.name) for array in arrays]
            for group, arrays in state.variables.items()
        }
        kinds = self.agreed(kinds)
        if kinds is None:
            return None
        progress = self.agreed(state and state.progress)
        variables = {
            group: self.shared_arrays(
                state.variables[group]
                if state
                else [np.zeros(shape, np.dtype(dtype)) for shape, dtype in of_group]
            )
            for group, of_group in kinds.items()
        }
        return LoadedState(variables, progress)

    def shared_arrays(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The arrays of process 0; elsewhere any of the same shapes and dtypes."""
        return arrays if self.processes == 1 else from_first_process(arrays)

    def announce(self, name: str, value: Any) -> None:
        """Leaves a value, one that JSON can hold, for all; the first one stays."""
        if self.announced(name) is None:
            self._board.put(f"announced/{name}", json.dumps(value))

    def announced(self, name: str) -> Any:
        """What a process has announced; `None` if nothing."""
        text = self._board.under("announced").get(name)
        return None if text is None else json.loads(text)

    def finish(self) -> None:
        """Waits until all processes are here; then none is missed any more."""
        if self.processes == 1:
            return
        self.check_same({})
        forget_abort()
        self._left.set()
        self._watcher.join()

    def fail(self, error: BaseException) -> None:
        """Tells the others why this process ends, and waits until they know.

        Raises:
            ProcessLostError: another one had ended before, which made this one fail.
        """
        if self.processes == 1:
            return
        self._noticed.set()
        if is_of_runtime(error):
            self._watcher.join(SILENCE + GRACE)
        self._left.set()
        self._watcher.join(GRACE)
        # Who ends because of another one is not to blame.
        why = "" if self._lost else f"{type(error).__name__}: {error}"
        atexit.register(end_at_once)
        end = time.monotonic() + GRACE
        try:
            self._board.put(f"ended/{self.process}", why)
            while time.monotonic() < end:
                if len(self._board.under("ended")) == self.processes:
                    break
                time.sleep(BEAT / 5)
            if self.writes:
                time.sleep(PATIENCE)  # JAX aborts those that process 0 leaves behind
        except RuntimeError:
            pass  # process 0 is gone
        if self._lost is not None and is_of_runtime(error):
            raise ProcessLostError(self._lost) from error

    def new_name(self, kind: str) -> str:
        """A name that no text has had; the same one in all processes."""
        self._count += 1
        return f"{kind}/{self._count}"

    def _wait_for(self, name: str) -> str:
        while self._lost is None:
            text = self._board.get(name, BEAT)
            if text is not None:
                return text
        raise ProcessLostError(self._lost)

    def _watch(self) -> None:
        """Shows that this process lives, until it leaves or another one is gone."""
        start = time.monotonic()
        seen = {str(number): ("", start) for number in range(self.processes)}
        beat = 0
        while not self._left.wait(BEAT) and self._lost is None:
            beat += 1
            try:
                self._board.put(f"beat/{self.process}", str(beat))
                ended = self._board.under("ended")
                beats = self._board.under("beat")
            except RuntimeError:
                self._lose(UNREACHABLE)
                break
            now = time.monotonic()
            for number, (last, when) in seen.items():
                if (text := beats.get(number, "")) != last:
                    seen[number] = text, now
                elif now - when > SILENCE and not self._left.is_set():
                    self._lose(f"process {number} has ended or hangs")
            for number, why in ended.items():
                if why and number != str(self.process):
                    self._lose(f"process {number} has ended ({why})")
        if self._lost is not None and not self._noticed.wait(PATIENCE):
            # The main thread waits for the other process, within a computation.
            print(f"Error: {self._lost}", file=sys.stderr)
            end_at_once()

    def _lose(self, what: str) -> None:
        self._lost = what_to_do(what)


def what_to_do(what: str) -> str:
    """The line that says what has happened to another process."""
    return (
        f"{what}: start all processes again with the same command; the run continues "
        "from its last state"
    )


def end_at_once() -> None:
    """Ends this process without JAX, which waits for others that are gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(2)


def is_of_runtime(error: BaseException) -> bool:
    """Whether JAX raised an error because of another process."""
    names = [kind.__name__ for kind in type(error).__mro__]
    return "JaxRuntimeError" in names or "Gloo" in str(error)
