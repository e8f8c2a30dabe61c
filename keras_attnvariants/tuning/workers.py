"""Tuners, which train the trials of a search by themselves or for a chief."""

import contextlib
import multiprocessing
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.errors import FailedTrialError
from keras_tuner.errors import FatalError
from keras_tuner.errors import FatalValueError

from keras_attnvariants.training import DivergedError
from keras_attnvariants.training import NonFiniteError
from keras_attnvariants.tuning.results import ERROR
from keras_attnvariants.tuning.results import TrialRecord
from keras_attnvariants.utils.checks import check_address
from keras_attnvariants.utils.files import replace_file
from keras_attnvariants.utils.locks import FolderInUseError
from keras_attnvariants.utils.machine import environment

WORKERS = "workers"
# Seconds between two signs of life.
BEAT = 5.0
# Seconds that a worker waits for a chief that has not begun, or is started again.
PATIENCE = 600.0
# Seconds between two looks at something awaited.
PAUSE = 0.2
# How a call ends if nobody answers.
AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
# keras-tuner takes whoever has this in its name for the chief.
CHIEF = "chief"


class ChiefGoneError(FatalValueError):
    """No chief has answered for a long time."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"No chief has answered for {PATIENCE:g} seconds: start it again, and then "
            f"this worker; its trial is kept. Received: {address!r}"
        )


class RunTuner(BaseTuner):
    """Trains the trials that an oracle proposes, each as a run that can be resumed.

    Args:
        oracle: knows the whole space, and saves itself.
        train: takes the folder of a trial and its values, and returns its record.
        folder: folder of the search; each trial has a folder in it.
    """

    oracle: Any

    def __init__(
        self, oracle: Any, train: Callable[[Path, Any], TrialRecord], folder: Path
    ) -> None:
        self._train = train
        folder = folder.resolve()
        super().__init__(oracle, directory=folder.parent, project_name=folder.name)

    def save(self) -> None:
        """Write nothing: only an oracle has a state."""

    def search(self) -> None:
        """Train trials until the oracle has no more.

        Raises:
            OSError: the disk is full, or a folder cannot be written.
            SystemExit: after SIGTERM or SIGINT; the trial is continued the next time.
        """
        try:
            super().search()
        except FatalError as error:
            raise error.__cause__ or error from None

    def pre_create_trial(self) -> None:
        """Wait a little: an oracle without a trial is asked again and again."""
        time.sleep(PAUSE)

    def run_trial(self, trial: Any) -> dict[str, float]:
        """Train a trial, or continue it where it was killed.

        Returns:
            The score by the name of the objective.
        """
        folder = Path(self.get_trial_dir(trial.trial_id))
        try:
            record = self._record(folder, trial.hyperparameters.values)
        except OSError as error:
            raise FatalError(str(error)) from error
        except Exception as error:
            message = f"{type(error).__name__}: {error}".partition("\n")[0]
            print(f"Trial {trial.trial_id} failed. {message}")
            replace_file(folder / ERROR, f"{message}\n".encode())
            if is_due_to_the_point(error):
                raise FailedTrialError(message) from error
            raise
        (folder / ERROR).unlink(missing_ok=True)
        print(record.describe(self.oracle.objective.name))
        return {self.oracle.objective.name: record.score}

    def _record(self, folder: Path, values: dict[str, Any]) -> TrialRecord:
        """The record of a trial, as soon as no other process is at work on it."""
        while True:
            try:
                return self._train(folder, values)
            except FolderInUseError:
                time.sleep(PAUSE)


def is_due_to_the_point(error: Exception) -> bool:
    """Whether a trial would fail again: it diverged, or does not fit into memory."""
    kinds = NonFiniteError, DivergedError, MemoryError
    return isinstance(error, kinds) or type(error).__name__ == "ResourceExhaustedError"


class WorkerTuner(RunTuner):
    """Trains the trials that a chief hands out, and waits for a chief that is away.

    Args:
        oracle, train, folder: as for `RunTuner`; the oracle is that of the chief's
            search, and proposes nothing here.
        chief: address of the chief, `"host:port"`.
        name: name of this worker.
    """

    def __init__(
        self, oracle: Any, train: Any, folder: Path, chief: str, name: str
    ) -> None:
        self._chief = chief
        self._channel = grpc.insecure_channel(chief)
        host, port = check_address("address", chief)
        # keras-tuner has no other way to say that this is a worker.
        with environment(
            KERASTUNER_ORACLE_IP=host,
            KERASTUNER_ORACLE_PORT=str(port),
            KERASTUNER_TUNER_ID=name,
        ):
            super().__init__(oracle, train, folder)

    def search(self) -> None:
        """Train trials until the chief has no more.

        Raises:
            ChiefGoneError: no chief answers.
            OSError: the disk is full, or a folder cannot be written.
            SystemExit: after SIGTERM or SIGINT; the trial is continued the next time.
        """
        while True:
            try:
                return super().search()
            except grpc.RpcError as error:
                # A chief that ended while it was asked gives the same trial again.
                if error.code() not in AWAY:
                    raise

    def pre_create_trial(self) -> None:
        """Wait for the chief."""
        super().pre_create_trial()
        self._wait_for_chief()

    def run_trial(self, trial: Any) -> dict[str, float]:
        """Train a trial, and wait until the chief can be told."""
        scores = super().run_trial(trial)
        self._wait_for_chief()
        return scores

    def _wait_for_chief(self) -> None:
        ready = grpc.channel_ready_future(self._channel)
        with contextlib.suppress(grpc.FutureTimeoutError):
            return ready.result(timeout=min(PAUSE, PATIENCE))
        print(f"The chief at {self._chief} does not answer: waiting for it.")
        try:
            ready.result(timeout=PATIENCE)
        except grpc.FutureTimeoutError:
            ready.cancel()
            raise ChiefGoneError(self._chief) from None


def check_worker_name(name: str) -> None:
    """Raises unless a worker may have this name.

    Raises:
        ValueError: it is no name of a file, or has a meaning for keras-tuner.
    """
    if not re.fullmatch(r"[\w-][\w.-]*", name) or CHIEF in name:
        raise ValueError(
            "The name of a worker must consist of letters, digits, `.`, `-` and `_`, "
            f"without {CHIEF!r}. Received: {name!r}"
        )


def wait_for_search(settings: Path, chief: str) -> None:
    """Wait until a chief has begun a search, and written its settings.

    Raises:
        ChiefGoneError: it does not begin.
    """
    end = time.monotonic() + PATIENCE
    if not settings.exists():
        print(f"Waiting for the chief at {chief} to begin a search: {settings}.")
    while not settings.exists():
        if time.monotonic() > end:
            raise ChiefGoneError(chief)
        time.sleep(PAUSE)


@contextlib.contextmanager
def heartbeat(folder: Path, name: str) -> Iterator[None]:
    """Context in which a worker gives signs of life, as a file that changes.

    A process that a chief has started ends with the chief, its state saved.

    Args:
        folder: folder of the search, which chief and workers share.
        name: name of the worker.
    """
    path = folder / WORKERS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    ended = threading.Event()

    def beat() -> None:
        while True:
            with contextlib.suppress(OSError):
                replace_file(path, str(time.time_ns()).encode())
            if ended.wait(BEAT):
                return
            chief = multiprocessing.parent_process()
            if chief is not None and not chief.is_alive():
                os.kill(os.getpid(), signal.SIGTERM)
                return

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
