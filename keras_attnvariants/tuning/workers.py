"""Workers: signs of life, names, and processes that are started again."""

import contextlib
import multiprocessing
import os
import pickle  # noqa: S403 (between processes of ours)
import re
import signal
import socket
import threading
import uuid
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_attnvariants.utils.checks import check_address
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.processes import call_quietly
from keras_attnvariants.utils.processes import shared_machine

WORKERS = "workers"
# Seconds between two signs of life.
BEAT = 5.0
# How often a process is started again in a search.
MAX_RESTARTS = 10
# keras-tuner takes whoever has this in its name for the chief.
CHIEF = "chief"


class WorkersDiedError(ValueError):
    """The processes of the workers end again and again."""


class Heartbeat:
    """Context in which a worker gives signs of life, as a file that changes.

    A process that a chief has started ends with the chief, its state saved.

    Args:
        folder: of the search, which chief and workers share.
        name: of the worker.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / WORKERS / name
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                write_file(self._path, uuid.uuid4().hex.encode())
            if self._ended.wait(BEAT):
                return
            chief = multiprocessing.parent_process()
            if chief is not None and not chief.is_alive():
                os.kill(os.getpid(), signal.SIGTERM)
                return


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


@contextlib.contextmanager
def keras_tuner_names(address: str, name: str) -> Iterator[None]:
    """Context in which keras-tuner knows its chief and the name of this process."""
    host, port = check_address("address", address)
    names = {
        "KERASTUNER_ORACLE_IP": host,
        "KERASTUNER_ORACLE_PORT": str(port),
        "KERASTUNER_TUNER_ID": name,
    }
    before = {key: os.environ.get(key) for key in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def chief_address() -> str:
    """The address that `keras_tuner_names` was given."""
    return ":".join(os.environ[f"KERASTUNER_ORACLE_{part}"] for part in ("IP", "PORT"))


class LocalWorkers:
    """Processes on this machine, started again under their names if they die.

    Args:
        run: called in each process with the address of the chief and the name of the
            worker; can be pickled.
        address: of the chief.
        count: number of processes, which share the cores.
    """

    def __init__(
        self, run: Callable[[str, str], None], address: str, count: int
    ) -> None:
        self._run = run
        self._address = address
        host = socket.gethostname().replace(CHIEF, "host")
        self._names = [f"{host}-{i + 1}" for i in range(count)]
        self._processes: dict[str, Any] = {}
        self._restarts = 0

    def __enter__(self) -> "LocalWorkers":
        for name in self._names:
            self._start(name)
        return self

    def __exit__(self, *error: Any) -> None:
        for process in self._processes.values():
            process.terminate()  # the state is saved first
        for process in self._processes.values():
            process.join()

    @property
    def have_ended(self) -> bool:
        """Whether all processes have ended as they should."""
        return all(process.exitcode == 0 for process in self._processes.values())

    @property
    def process_ids(self) -> dict[str, int]:
        """The process of each worker, by its name."""
        return {name: process.pid for name, process in self._processes.items()}

    def look(self) -> None:
        """Start those again that have died.

        Raises:
            WorkersDiedError: that has happened too often.
        """
        for name, process in list(self._processes.items()):
            if process.exitcode in (None, 0):
                continue
            self._restarts += 1
            if self._restarts > MAX_RESTARTS:
                raise WorkersDiedError(
                    f"Workers died {self._restarts} times, the last with exit status "
                    f"{process.exitcode}: see what they printed"
                )
            print(f"Worker {name} died ({process.exitcode}) and is started again.")
            self._start(name)

    def _start(self, name: str) -> None:
        with shared_machine(len(self._names)):
            context = multiprocessing.get_context("spawn")
            process = context.Process(
                target=call_quietly,
                args=(pickle.dumps(self._run), self._address, name),
                name=name,
                daemon=True,
            )
            process.start()
        self._processes[name] = process


def free_address() -> str:
    """An address on this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
