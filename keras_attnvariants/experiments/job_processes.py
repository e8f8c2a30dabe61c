"""Jobs in processes of their own, so many at a time, and how far they are."""

import contextlib
import errno
import multiprocessing
import os
import pickle  # noqa: S403 (between processes of ours)
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field
from multiprocessing.connection import Connection
from multiprocessing.connection import wait
from pathlib import Path
from types import FrameType
from typing import Any
from typing import NamedTuple

from rich.console import Console

from keras_attnvariants.utils.importing import import_tensorflow
from keras_attnvariants.utils.locks import FolderInUseError
from keras_attnvariants.utils.processes import shared_machine
from keras_attnvariants.utils.progress import Bar
from keras_attnvariants.utils.progress import clock

# Seconds that the process of a killed comparison has to save its state and end.
PATIENCE = 60.0
# The errors of a disk, a quota and a file that are full.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Exit status of a process whose state was saved when it was told to stop.
STOPPED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Job:
    """Something that a process does.

    Attributes:
        name: for people to read.
        function: called with `arguments` and a function that takes how far it is and
            what it does; can be pickled.
        arguments: of the function.
        log: file for what the process prints.
    """

    name: str
    function: Callable[..., None]
    arguments: tuple[Any, ...]
    log: Path


class Failure(NamedTuple):
    """The message of a process whose job failed."""

    error: str
    is_full_disk: bool


@dataclass
class Outcome:
    """How some jobs ended.

    Attributes:
        failed: what was wrong, by name of the job.
        stopped: whether the time was up before all had ended.
    """

    failed: dict[str, str] = field(default_factory=dict)
    stopped: bool = False


class JobsProgress:
    """Shows on standard error how many jobs are done, and what those at work do.

    Args:
        what: the jobs together, such as `"runs"`.
        total: number of jobs.
        done: how many of them had ended before.
        console: where to write; by default standard error.
    """

    def __init__(
        self, what: str, total: int, done: int = 0, console: Console | None = None
    ) -> None:
        self._what = what
        self._total = max(total, 1)
        self._ended = done
        self._shares: dict[str, float] = {}
        self._first: dict[str, float] = {}
        self._texts: dict[str, str] = {}
        self._start = time.monotonic()
        self._worked = 0.0  # jobs, in parts, since the start
        self._bar = Bar(
            "{task.percentage:.0f} %, {task.description}",
            "starting",
            console=console,
            bar_width=20,
            writes=True,
        )

    def __enter__(self) -> "JobsProgress":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    @property
    def completed(self) -> float:
        """How much is done, from 0 to 1."""
        return min((self._ended + sum(self._shares.values())) / self._total, 1.0)

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the end; `None` until they can be estimated."""
        parts = self._worked + sum(
            share - self._first[name] for name, share in self._shares.items()
        )
        if parts <= 0.0:
            return None
        left = self._total * (1 - self.completed)
        return left * (time.monotonic() - self._start) / parts

    def update(self, name: str, done: float, text: str) -> None:
        """A job is that far, from 0 to 1."""
        self._first.setdefault(name, done)
        self._shares[name], self._texts[name] = done, text
        self._show()

    def ended(self, name: str, error: str | None) -> None:
        """A job has ended."""
        self._worked += 1.0 - self._first.pop(name, 0.0)
        self._shares.pop(name, None)
        self._texts.pop(name, None)
        self._ended += 1
        self._bar.print(f"{name}: {'done' if error is None else error}")
        self._show()

    def _show(self) -> None:
        parts = [f"{self._ended:,} of {self._total:,} {self._what}"]
        parts += [f"{name}: {text}" for name, text in self._texts.items()]
        if (left := self.seconds_left) is not None:
            parts.append(f"{clock(left)} left")
        text = "; ".join(parts)
        self._bar.show(self.completed, text, f"{self.completed:.0%}, {text}")


def run_jobs(
    jobs: Iterable[Job],
    at_once: int,
    threads: int | None,
    deadline: float | None,
    progress: JobsProgress,
) -> Outcome:
    """Does jobs, each in a process of its own.

    A process that dies costs its job only; a full disk ends all.

    Args:
        jobs: what to do, in order.
        at_once: number of processes.
        threads: of TensorFlow in each; `None` shares the cores.
        deadline: when to stop, by `time.monotonic`. What runs then is told to save its
            state.
        progress: is told how jobs go on.

    Returns:
        What failed, and whether the time was up.
    """
    pool = Pool(progress)
    with stoppable(), shared_machine(at_once, threads):
        waiting = deque(jobs)
        try:
            while (waiting or pool.running) and not pool.is_over:
                if deadline is not None and time.monotonic() >= deadline:
                    pool.outcome.stopped = True
                    break
                while waiting and len(pool.running) < at_once:
                    pool.start(waiting.popleft())
                pool.listen()
        finally:
            pool.stop()
    return pool.outcome


class Pool:
    """The processes that are at work.

    Args:
        progress: is told how jobs go on.

    Attributes:
        running: job and process by the connection to it.
        outcome: how the jobs ended so far.
        is_over: whether no further job is to be started.
    """

    def __init__(self, progress: JobsProgress) -> None:
        self.running: dict[Connection, tuple[Job, Any]] = {}
        self.outcome = Outcome()
        self.is_over = False
        self._progress = progress
        self._errors: dict[str, str] = {}

    def start(self, job: Job) -> None:
        """Start the process of a job."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        # Unpickled there, what it needs is imported after the output goes to the log.
        arguments = pickle.dumps(job), job.log, theirs
        process = context.Process(target=work_on, args=arguments, name=job.name)
        process.start()
        theirs.close()
        self.running[ours] = job, process

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
            if isinstance(message, Failure):
                self._errors[job.name] = message.error
                self.is_over |= message.is_full_disk
            else:
                self._progress.update(job.name, *message)

    def stop(self) -> None:
        """Tell all processes to save their states, and wait for them."""
        for _, process in self.running.values():
            process.terminate()
        for connection, (job, process) in self.running.items():
            process.join()
            connection.close()
            if process.exitcode not in (0, STOPPED, -signal.SIGTERM):
                self._ended(job, process.exitcode)
        self.running.clear()

    def _ended(self, job: Job, status: int) -> None:
        error = self._errors.pop(job.name, None)
        if status and error is None:
            error = f"its process ended with status {status}, see {job.log}"
        if error is not None:
            self.outcome.failed[job.name] = error
        self._progress.ended(job.name, error)


def work_on(pickled: bytes, path: Path, connection: Connection) -> None:
    """Does a job in this process, which ends with the one that started it."""
    os.setpgrp()  # Ctrl-C is for the process that started this one.
    threading.Thread(target=end_with_parent, daemon=True).start()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)

    def report(done: float, text: str) -> None:
        with contextlib.suppress(OSError):  # the other end may have been killed
            connection.send((done, text))

    try:
        import_tensorflow()
        do_when_free(pickle.loads(pickled), report)  # noqa: S301 (ours)
    except (ValueError, OSError, ArithmeticError) as error:
        traceback.print_exc()
        is_full_disk = getattr(error, "errno", None) in FULL
        connection.send(Failure(" ".join(str(error).split()), is_full_disk))
        sys.exit(2)


def do_when_free(job: Job, report: Callable[[float, str], None]) -> None:
    """Does a job, if need be after a process of a killed comparison has ended."""
    last = time.monotonic() + PATIENCE
    while True:
        try:
            return job.function(*job.arguments, report)
        except FolderInUseError:
            if time.monotonic() > last:
                raise
            time.sleep(1.0)


def end_with_parent() -> None:
    """Ends this process, its state saved, when the one that started it has ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Context in which SIGTERM is an exception, so that processes are told to stop."""

    def stop(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
