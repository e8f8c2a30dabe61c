"""An exchange with a server: the request, its tries, and why there is no answer.

Every failure is an exception of its own with a message of one line.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic
from typing import TypeVar

T = TypeVar("T")

_LONGEST = 400  # characters of what a server said
# Seconds before a request is sent again, at most: they double so many times.
_FIRST_PAUSE = 0.25
_DOUBLINGS = 4


class ServingError(OSError):
    """The server failed, or its answer makes no sense."""


class InvalidRequestError(ServingError):
    """The server refuses what was sent; the message names the input."""


class ModelNotFoundError(ServingError):
    """The server has no such model, version or method."""


class AccessError(ServingError):
    """The server, or what stands before it, wants other credentials."""


class MessageTooLargeError(ServingError):
    """A request or a reply has more bytes than one side accepts."""


class ServerBusyError(ServingError):
    """The server refuses more work: a quota or a limit is reached."""


class ServerUnavailableError(ServingError):
    """Nobody answers there, or not now; what was sent may be sent again."""


class DeadlineError(ServingError):
    """There was no answer in time."""


BY_CODE: dict[str, type[ServingError]] = {
    "INVALID_ARGUMENT": InvalidRequestError,
    "FAILED_PRECONDITION": InvalidRequestError,
    "OUT_OF_RANGE": InvalidRequestError,
    "NOT_FOUND": ModelNotFoundError,
    "UNIMPLEMENTED": ModelNotFoundError,
    "UNAUTHENTICATED": AccessError,
    "PERMISSION_DENIED": AccessError,
    "RESOURCE_EXHAUSTED": ServerBusyError,
    "UNAVAILABLE": ServerUnavailableError,
    "DEADLINE_EXCEEDED": DeadlineError,
}

# What TensorFlow Serving, and a proxy before it, answers over HTTP.
BY_STATUS: dict[int, type[ServingError]] = {
    400: InvalidRequestError,
    401: AccessError,
    403: AccessError,
    404: ModelNotFoundError,
    413: MessageTooLargeError,
    429: ServerBusyError,
    501: ModelNotFoundError,
    502: ServerUnavailableError,
    503: ServerUnavailableError,
    504: DeadlineError,
}


def error_of_code(address: str, code: str, details: str) -> ServingError:
    """The exception for a status of gRPC."""
    kind = BY_CODE.get(code, ServingError)
    if kind is ServerBusyError and "larger than max" in details:
        kind = MessageTooLargeError
    return kind(f"{address}: {one_line(details)} ({code})")


def error_of_status(address: str, status: int, details: str) -> ServingError:
    """The exception for a status of HTTP."""
    kind = BY_STATUS.get(status, ServingError)
    return kind(f"{address}: {one_line(details)} (HTTP {status})")


def one_line(text: str) -> str:
    """The first characters of a text, without line breaks and control characters."""
    text = " ".join(text.split())
    text = "".join(character for character in text if character.isprintable())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


@dataclass(frozen=True)
class Request(Generic[T]):
    """Bytes for the server, and how to read the bytes that it answers.

    Attributes:
        path: method of gRPC, or path of HTTP.
        body: `None` for a request of HTTP that has none.
        read: takes the body of the reply; may raise any error of reading.
    """

    path: str
    body: bytes | None
    read: Callable[[bytes], T]

    def check_size(self, max_bytes: int) -> None:
        """Check that the request may be sent.

        Raises:
            MessageTooLargeError: it has too many bytes.
        """
        size = len(self.body or b"")
        if size > max_bytes:
            raise MessageTooLargeError(
                f"The request has {size:,} bytes, more than `max_message_bytes` "
                f"({max_bytes:,}): send fewer sentences at once"
            )


class Tries:
    """The tries of one request, over gRPC and REST alike.

    Pauses between them double, and vary by chance so that clients do not come back
    together. gRPC's own policy of retries ends after four, whatever it is told.

    Args:
        timeout: seconds for all tries and pauses.
        retries: times that the request is sent again.
    """

    def __init__(self, timeout: float, retries: int) -> None:
        self._timeout = timeout
        self._retries = retries
        self._failed = 0
        self._end = time.monotonic() + timeout

    def left(self) -> float:
        """Seconds until the deadline, at least a millisecond."""
        return max(self._end - time.monotonic(), 1e-3)

    def pause(self, error: ServerUnavailableError) -> float:
        """Seconds to wait after a try that failed.

        Raises:
            ServerUnavailableError: that was the last try.
            DeadlineError: there is no time for another.
        """
        if self._failed == self._retries:
            raise error
        longest = _FIRST_PAUSE * 2 ** min(self._failed, _DOUBLINGS)
        pause = random.uniform(longest / 2, longest)
        self._failed += 1
        if pause >= self.left():
            raise DeadlineError(
                f"{error}; tried {self._failed} times in {self._timeout:g} seconds"
            ) from error
        return pause
