"""The chief: hands out trials to workers, and takes them back from silent ones."""

import contextlib
import time
from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from keras_attnvariants.tuning.workers import WORKERS
from keras_attnvariants.tuning.workers import LocalWorkers
from keras_attnvariants.tuning.workers import free_address

# Seconds without a sign of life until a worker counts as dead.
SILENCE = 60.0
# Seconds between two looks at the workers.
PAUSE = 0.5


def hand_out(
    oracle: Any,
    folder: Path,
    join: Callable[[str, str], None],
    workers: int,
    address: str | None = None,
) -> None:
    """Hand out trials until there are none and all workers know it.

    Args:
        oracle: a new `Recoverable` oracle; it goes on where that of the folder stopped.
        folder: of the search.
        join: what a process on this machine runs; see `LocalWorkers`.
        workers: number of those processes.
        address: `"host:port"` for workers on other machines as well.

    Raises:
        OSError: the address is in use.
        SearchFailedError: too many trials in a row failed.
        WorkersDiedError: processes on this machine die again and again.
    """
    oracle.keeps_ongoing = True
    whole = folder.resolve()
    oracle._set_project_dir(whole.parent, whole.name)
    if Path(oracle._get_oracle_fname()).exists():
        oracle.reload()
    chief = address or free_address()
    watchdog = Watchdog(oracle, folder)
    with serving(oracle, chief), LocalWorkers(join, chief, workers) as local:
        while oracle.failure is None and not has_ended(oracle, local, workers):
            time.sleep(PAUSE)
            watchdog.look()
            local.look()
    if oracle.failure is not None:
        raise oracle.failure


def has_ended(oracle: Any, local: Any, workers: int) -> bool:
    """Whether no trial is left, and no worker waits for one."""
    if workers and not local.have_ended:
        return False
    if oracle.ongoing_trials or oracle.tuner_ids:
        return False
    return bool(workers) or bool(oracle.has_stopped)


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
