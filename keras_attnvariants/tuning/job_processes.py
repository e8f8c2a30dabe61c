"""Runs jobs in separate processes, several at a time, and shows their progress."""

import contextlib
import functools
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from keras_attnvariants.training.callbacks import StopRequest
from keras_attnvariants.training.state import DISK_FULL_ERRORS
from keras_attnvariants.utils.locks import FolderInUseError
from keras_attnvariants.utils.machine import shared_machine
from keras_attnvariants.utils.processes import start_process
from keras_attnvariants.utils.progress import PERCENT
from keras_attnvariants.utils.progress import Bar

# Called with the share of a job that is done, and with what it does.
Report = Callable[[float, str], None]

# Seconds to wait for the process of a killed comparison to save its state and end.
SECONDS_TO_END = 60.0
# Exit statuses of a process: its job failed, its disk is full, its state was saved.
FAILED, DISK_IS_FULL, STOPPED = 2, 3, 128 + signal.SIGTERM


@dataclass(frozen=True)
class Job:
    """A job for a process.

    Attributes:
        name: name for people to read.
        function: called with a function to report the share that is done and a text;
            can be pickled.
        log: file for the output of the process.
    """

    name: str
    function: Callable[[Report], None]
    log: Path


class IncompleteError(ValueError):
    """Some jobs failed; the results of the others are kept.

    Args:
        failed: error messages by name of the job.
    """

    def __init__(self, failed: Mapping[str, str]) -> None:
        name, error = next(iter(failed.items()))
        others = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        super().__init__(
            f"{name} failed{others}: {error}. Run the same command again for what "
            "is missing"
        )


def run_jobs(
    jobs: Sequence[Job],
    what: str,
    total: int,
    at_once: int,
    threads: int | None = None,
    deadline: float | None = None,
) -> dict[str, str]:
    """Runs jobs, each in its own process.

    If a process dies, only its job fails; a full disk ends all jobs.

    Args:
        jobs: the jobs, in order.
        what: a noun for the jobs, such as `"runs"`.
        total: number of jobs, including those done before.
        at_once: number of processes.
        threads: threads of TensorFlow in each; `None` shares the cores.
        deadline: when to stop, by `time.monotonic`. Running jobs are told to save their
            state.

    Returns:
        Error messages of failed jobs, by name.

    Raises:
        SystemExit: after SIGTERM or SIGINT, all states saved.
    """
    waiting = deque(jobs)
    pool = Pool(what, total, total - len(jobs))
    with shared_machine(at_once, threads), StopRequest() as request:
        try:
            while (waiting or pool.running) and not (pool.is_over or request.number):
                if deadline is not None and time.monotonic() >= deadline:
                    break
                while waiting and len(pool.running) < at_once:
                    pool.start(waiting.popleft())
                pool.listen()
        finally:
            pool.stop()
    if request.number:
        sys.exit(request.exit_code)
    return pool.failed


class Pool:
    """The running processes; shows their progress on standard error.

    Args:
        what: a noun for the jobs, such as `"runs"`.
        total: number of jobs.
        done: how many of them had ended before.

    Attributes:
        running: job and process by the connection to it.
        failed: error messages of failed jobs so far, by name.
        is_over: whether the disk is full, so that no further job should start.
    """

    def __init__(self, what: str, total: int, done: int) -> None:
        self.running: dict[Connection, tuple[Job, Any]] = {}
        self.failed: dict[str, str] = {}
        self.is_over = False
        self._what = what
        self._total = max(total, 1)
        self._done = done
        # The share of each job that is done, and its text; no text once it has ended.
        self._reports: dict[str, tuple[float, str]] = {}
        self._bar = Bar(PERCENT, "starting", bar_width=20, writes=True)
        self._bar.start()

    def start(self, job: Job) -> None:
        """Start the process of a job."""
        process, connection = start_process(functools.partial(run_job, job), job.log)
        self.running[connection] = job, process

    def listen(self) -> None:
        """Take the messages that come within half a second."""
        ready = wait(list(self.running), timeout=0.5)
        for connection in [c for c in self.running if c in ready]:
            job, process = self.running[connection]
            try:
                message = connection.recv()
            except (EOFError, ConnectionResetError):
                process.join()
                del self.running[connection]
                self._ended(job, process.exitcode)
                continue
            if isinstance(message, str):
                self.failed[job.name] = message
            else:
                found = 0.0 if job.name in self._reports else message[0]
                self._show(job, message, found)

    def stop(self) -> None:
        """Tell all processes to save their state, and wait for them."""
        for _, process in self.running.values():
            process.terminate()
        for job, process in self.running.values():
            process.join()
            if process.exitcode not in (0, STOPPED, -signal.SIGTERM):
                self._ended(job, process.exitcode)
        self._bar.stop()

    def _ended(self, job: Job, status: int) -> None:
        if status:
            error = f"its process ended with status {status}, see {job.log}"
            self.failed.setdefault(job.name, error)
        self.is_over |= status == DISK_IS_FULL
        self._bar.print(f"{job.name}: {self.failed.get(job.name, 'done')}")
        self._show(job, (1.0, ""))

    def _show(self, job: Job, report: tuple[float, str], found: float = 0.0) -> None:
        self._reports[job.name] = report
        reports = self._reports.items()
        done = self._done + sum(share for _, (share, _) in reports)
        texts = [f"{name}: {text}" for name, (_, text) in reports if text]
        ended = self._done + len(reports) - len(texts)
        parts = [f"{ended:,} of {self._total:,} {self._what}", *texts]
        self._bar.show(done / self._total, "; ".join(parts), found / self._total)


def run_job(job: Job, connection: Connection) -> None:
    """Runs a job in this process."""

    def report(done: float, text: str) -> None:
        with contextlib.suppress(OSError):  # the other end may have been killed
            connection.send((done, text))

    try:
        run_when_unlocked(job, report)
    except (ValueError, OSError, ArithmeticError) as error:
        traceback.print_exc()
        connection.send(" ".join(str(error).split()))
        is_full = getattr(error, "errno", None) in DISK_FULL_ERRORS
        sys.exit(DISK_IS_FULL if is_full else FAILED)


def run_when_unlocked(job: Job, report: Report) -> None:
    """Runs a job, if necessary after a process of a killed comparison has ended."""
    last = time.monotonic() + SECONDS_TO_END
    while True:
        try:
            return job.function(report)
        except FolderInUseError:
            if time.monotonic() > last:
                raise
            time.sleep(1.0)
