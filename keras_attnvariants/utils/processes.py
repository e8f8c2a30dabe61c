"""Processes that this one starts, with their output in a file."""

import multiprocessing
import os
import pickle  # noqa: S403 (between processes of ours)
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from keras_attnvariants.utils.importing import import_tensorflow


def start_process(
    function: Callable[[Connection], None], log: Path
) -> tuple[Any, Connection]:
    """Starts a process that calls a function, and ends if this process ends.

    Args:
        function: called with the connection to this process; can be pickled.
        log: file to which the output of the process is added.

    Returns:
        The process, and this end of the connection.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    # Pickled, so that its imports happen after the output goes to the log.
    arguments = pickle.dumps(function), log, theirs
    process = context.Process(target=_call, args=arguments)
    process.start()
    theirs.close()
    return process, ours


def _call(pickled: bytes, log: Path, connection: Connection) -> None:
    os.setpgrp()  # Ctrl-C is for the process that started this one.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    import_tensorflow()
    pickle.loads(pickled)(connection)  # noqa: S301 (ours)


def _end_with_parent() -> None:
    """Saves the state of this process and ends it once its parent has ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
