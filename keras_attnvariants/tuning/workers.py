"""Several workers: a chief that hands out trials, and processes that run them."""

import contextlib
import multiprocessing
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from keras_attnvariants.utils.files import write_file

WORKERS = "workers"
# Seconds between two signs of life, and without one until a worker counts as dead.
BEAT = 5.0
SILENCE = 60.0
# How often a process is started again in a search.
MAX_RESTARTS = 10


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


class Watchdog:
    """Gives the trials of silent workers back to the oracle.

    Clocks of machines may differ: what counts is when this process saw a change.

    Args:
        oracle: a `Recoverable` oracle.
        folder: of the search.
        silence: seconds without a sign of life until a worker counts as dead.
    """

    def __init__(self, oracle: Any, folder: Path, silence: float = SILENCE) -> None:
        self._oracle = oracle
        self._folder = folder / WORKERS
        self._silence = silence
        self._seen: dict[str, tuple[str, float]] = {}

    def look(self) -> list[str]:
        """Look at all workers that have a trial, or may still ask for one.

        Returns:
            The names of those that are dead.
        """
        dead = []
        now = time.monotonic()
        for name in {*self._oracle.ongoing_trials, *self._oracle.tuner_ids}:
            path = self._folder / name
            sign = path.read_text() if path.exists() else ""
            if self._seen.get(name, ("", 0.0))[0] != sign or name not in self._seen:
                self._seen[name] = sign, now
            elif now - self._seen[name][1] > self._silence:
                dead.append(name)
                del self._seen[name]
                if (trial := self._oracle.give_back(name)) is not None:
                    print(f"Worker {name} is gone; another continues trial {trial}.")
        return dead


@contextlib.contextmanager
def keras_tuner_names(address: str, name: str) -> Iterator[None]:
    """Context in which keras-tuner knows its chief and the name of this process."""
    ip, _, port = address.rpartition(":")
    names = {
        "KERASTUNER_ORACLE_IP": ip,
        "KERASTUNER_ORACLE_PORT": port,
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


@contextlib.contextmanager
def serving(oracle: Any, address: str) -> Iterator[None]:
    """Context in which keras-tuner's service answers workers.

    Raises:
        OSError: the address is in use.
    """
    import grpc
    from keras_tuner.src import protos
    from keras_tuner.src.distribute.oracle_chief import OracleServicer

    # Otherwise two chiefs could share a port.
    options = [("grpc.so_reuseport", 0)]
    server = grpc.server(ThreadPoolExecutor(max_workers=8), options=options)
    servicer = OracleServicer(oracle)
    protos.get_service_grpc().add_OracleServicer_to_server(servicer, server)
    try:
        bound = server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"`chief` must be a free address. Received: {address}") from error
    if not bound:
        raise OSError(f"`chief` must be a free address. Received: {address}")
    server.start()
    try:
        yield
    finally:
        server.stop(grace=1).wait()


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
        self._names = [f"{socket.gethostname()}-{i + 1}" for i in range(count)]
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
        threads = max(1, len(os.sched_getaffinity(0)) // len(self._names))
        with environment(TF_NUM_INTRAOP_THREADS=str(threads)):
            context = multiprocessing.get_context("spawn")
            process = context.Process(
                target=self._run, args=(self._address, name), name=name, daemon=True
            )
            process.start()
        self._processes[name] = process


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Context in which processes start with these variables, unless they are set."""
    added = {k: v for k, v in variables.items() if k not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def free_address() -> str:
    """An address on this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
