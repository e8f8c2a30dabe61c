"""Termination signals as a request that training answers between two updates."""

import signal
import threading
from types import FrameType
from typing import Any


class StopRequest:
    """Context that turns the first SIGTERM or SIGINT into a request.

    `number` is the signal that came, or None. After the first one the former handlers
    are back, so a second signal acts at once. Outside the main thread, where Python
    allows no handlers, signals keep their usual effect.

    Example:

    >>> import os, signal
    >>> with StopRequest() as request:
    ...     os.kill(os.getpid(), signal.SIGTERM)
    >>> request.exit_code
    143
    """

    SIGNALS = (signal.SIGTERM, signal.SIGINT)

    def __init__(self) -> None:
        self.number: int | None = None
        self._former: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        """The exit status by which a shell knows a process ended by this signal."""
        return 128 + (self.number or 0)

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in self.SIGNALS:
                self._former[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former.clear()
