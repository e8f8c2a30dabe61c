"""A last line from a process that C++ code aborts."""

import ctypes
import os
import signal
from typing import Any

# Calls its argument when a signal has come, also in a thread that is not Python's.
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)
# What the C library calls must stay alive.
_kept: list[Any] = []


def tell_abort(line: str, status: int = 2) -> None:
    """Lets a process that is aborted end with a line on standard error, and a status.

    A handler of Python's module `signal` never runs: when it returned to Python, the
    process would be gone.
    """
    text = f"{line}\n".encode()

    def handle(number: int) -> None:
        os.write(2, text)
        os._exit(status)

    _kept.append(_HANDLER(handle))
    ctypes.CDLL(None).signal(signal.SIGABRT, _kept[-1])


def forget_abort() -> None:
    """Lets an abort be one again."""
    ctypes.CDLL(None).signal(signal.SIGABRT, None)
