"""The chief: hands out trials to workers, and takes them back from silent ones."""

import contextlib
import itertools
import multiprocessing
import pickle  # noqa: S403 (between processes of ours)
import socket
import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

from keras_attnvariants.backend.private import oracle_server
from keras_attnvariants.tuning.workers import CHIEF
from keras_attnvariants.tuning.workers import PAUSE
from keras_attnvariants.tuning.workers import WORKERS
from keras_attnvariants.utils.importing import WRONG_INPUT
from keras_attnvariants.utils.importing import call_quietly
from keras_attnvariants.utils.machine import shared_machine

# Seconds without a sign of life until a worker counts as dead.
SILENCE = 60.0
# How often processes are started again in a search.
MAX_RESTARTS = 10


class Watchdog:
    """Gives the trials of silent workers back to the oracle.

    Clocks of machines may differ: what counts is when this process saw a change.

    Args:
        oracle: a `ResumableOracle`.
        silence: seconds without a sign of life until a worker counts as dead.
    """

    def __init__(self, oracle: Any, silence: float = SILENCE) -> None:
        self._oracle = oracle
        self._silence = silence
        self._seen: dict[str, tuple[str, float]] = {}

    def look(self) -> None:
        """Look at all workers that have a trial, or may still ask for one."""
        now = time.monotonic()
        known = {*self._oracle.ongoing_trials, *self._oracle.tuner_ids}
        for name in known - self._oracle.gone:
            path = self._oracle.folder / WORKERS / name
            sign = path.read_text() if path.exists() else ""
            before, since = self._seen.get(name, (None, now))
            if sign != before:
                self._seen[name] = sign, now
            elif now - since > self._silence:
                del self._seen[name]
                if (trial := self._oracle.give_back(name)) is not None:
                    print(f"Worker {name} is gone; another continues trial {trial}.")


@contextlib.contextmanager
def local_workers(
    run: Callable[[str, str], None], address: str, count: int
) -> Iterator[Callable[[], None]]:
    """Context with processes on this machine, which share its cores.

    Args:
        run: called in each process with the address of the chief and the name of the
            worker; can be pickled.
        address: address of the chief.
        count: number of processes.

    Yields:
        A function that starts those again, under their names, that have died. It raises
        `ValueError` if that has happened too often, or one would fail again.
    """
    host = socket.gethostname().replace(CHIEF, "host")
    context = multiprocessing.get_context("spawn")
    pickled = pickle.dumps(run)
    processes: dict[str, Any] = {}
    restarts = itertools.count(1)

    def start(name: str) -> None:
        processes[name] = context.Process(
            target=call_quietly, args=(pickled, address, name), name=name, daemon=True
        )
        with shared_machine(count):
            processes[name].start()

    def look() -> None:
        for name, process in list(processes.items()):
            if process.exitcode in (None, 0):
                continue
            if process.exitcode == WRONG_INPUT:
                raise ValueError(
                    f"Worker {name} cannot begin, and would not if it were started "
                    "again: see what it printed"
                )
            if next(restarts) > MAX_RESTARTS:
                raise ValueError(
                    f"Workers died more than {MAX_RESTARTS} times, the last with exit "
                    f"status {process.exitcode}: see what they printed"
                )
            print(f"Worker {name} died ({process.exitcode}) and is started again.")
            start(name)

    try:
        for number in range(count):
            start(f"{host}-{number + 1}")
        yield look
    finally:
        for process in processes.values():
            process.terminate()  # the state is saved first
        for process in processes.values():
            process.join()


def hand_out(
    oracle: Any,
    join: Callable[[str, str], None],
    workers: int,
    address: str | None = None,
) -> None:
    """Hand out trials until there are none and all workers know it.

    Args:
        oracle: a `ResumableOracle`; notes why the search has failed if it has.
        join: run by each process on this machine; see `local_workers`.
        workers: number of those processes.
        address: `"host:port"` for workers on other machines as well.

    Raises:
        OSError: the address is in use.
        ValueError: processes on this machine die again and again, or one would.
    """
    address = address or free_address()
    watchdog = Watchdog(oracle)
    with serving(oracle, address), local_workers(join, address, workers) as revive:
        while oracle.failure is None and not oracle.has_ended:
            time.sleep(PAUSE)
            watchdog.look()
            revive()


@contextlib.contextmanager
def serving(oracle: Any, address: str) -> Iterator[None]:
    """Context in which workers can ask an oracle.

    Raises:
        OSError: the address is in use.
    """
    server = oracle_server(oracle)
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"`chief` must be a free address. Received: {address}") from error
    server.start()
    try:
        yield
    finally:
        server.stop(grace=1).wait()


def free_address() -> str:
    """An address on this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
