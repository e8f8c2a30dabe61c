"""Exchanges with a server: addresses, retries and errors.

Each kind of failure has its own exception, with a message of one line.
"""

import contextlib
import random
import re
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple
from typing import TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")

_LONGEST = 400  # characters of a server's message
# Longest pause before the first retry, in seconds, and how often it doubles.
_FIRST_PAUSE = 0.25
_DOUBLINGS = 4

_SCHEMES = ("", "grpc", "grpcs", "http", "https")
_PLACE = re.compile(
    r"(?P<address>(?:[a-z]+://)?[^/]+)/(?P<model>[^/:@]+)"
    r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/]+))?"
)


class ServingError(OSError):
    """The server failed, or its answer makes no sense."""


class InvalidRequestError(ServingError):
    """The server refuses what was sent; the message names the input."""


class ModelNotFoundError(ServingError):
    """The server has no such model, version or method."""


class AccessError(ServingError):
    """The server, or a proxy before it, wants other credentials."""


class MessageTooLargeError(ServingError):
    """A request or a reply has more bytes than one side accepts."""


class ServerBusyError(ServingError):
    """The server refuses more work: a quota or a limit is reached."""


class ServerUnavailableError(ServingError):
    """The server does not answer, or is not ready; the request may be sent again."""


class DeadlineError(ServingError):
    """There was no answer in time."""


# By gRPC codes, and by the HTTP codes of TensorFlow Serving and a proxy before it.
_CODES: dict[type[ServingError], tuple[str | int, ...]] = {
    InvalidRequestError: (
        "INVALID_ARGUMENT",
        "FAILED_PRECONDITION",
        "OUT_OF_RANGE",
        400,
    ),
    ModelNotFoundError: ("NOT_FOUND", "UNIMPLEMENTED", 404, 501),
    AccessError: ("UNAUTHENTICATED", "PERMISSION_DENIED", 401, 403),
    MessageTooLargeError: (413,),
    ServerBusyError: ("RESOURCE_EXHAUSTED", 429),
    ServerUnavailableError: ("UNAVAILABLE", 502, 503),
    DeadlineError: ("DEADLINE_EXCEEDED", 504),
}


def error_of(address: str, status: str | int, details: str) -> ServingError:
    """The exception for a gRPC status, by its name, or an HTTP status."""
    kinds = (kind for kind, codes in _CODES.items() if status in codes)
    kind = next(kinds, ServingError)
    if kind is ServerBusyError and "larger than max" in details:
        kind = MessageTooLargeError
    shown = f"HTTP {status}" if isinstance(status, int) else status
    return kind(f"{address}: {one_line(details)} ({shown})")


def one_line(text: str) -> str:
    """The first characters of a text, without line breaks and control characters."""
    text = " ".join(text.split())
    text = "".join(character for character in text if character.isprintable())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class Connection(NamedTuple):
    """A model on a server, and the settings of requests to it.

    Attributes:
        address, model, version, label, headers: as for `Client`.
        max_bytes: largest size of a message in either direction, in bytes.
    """

    address: str
    model: str
    version: int | None
    label: str | None
    headers: Mapping[str, str]
    max_bytes: int


def pause_after(
    error: ServerUnavailableError, failed: int, timeout: float, left: float
) -> float:
    """The seconds to wait before a request is sent again, over gRPC and REST alike.

    Pauses double, and are random so that clients do not return together. gRPC's own
    policy allows at most four retries, whatever its settings.

    Args:
        error: error of the last try.
        failed: number of tries that failed.
        timeout: seconds for all tries and pauses.
        left: seconds until the deadline.

    Raises:
        DeadlineError: there is no time for another try.
    """
    longest = _FIRST_PAUSE * 2 ** min(failed - 1, _DOUBLINGS)
    pause = random.uniform(longest / 2, longest)
    if pause >= left:
        raise DeadlineError(
            f"{error}; tried {failed} times in {timeout:g} seconds"
        ) from error
    return pause


def check_size(body: bytes, max_bytes: int) -> None:
    """Raises `MessageTooLargeError` if a request is larger than its limit."""
    if len(body) > max_bytes:
        raise MessageTooLargeError(
            f"The request has {len(body):,} bytes, more than `max_message_bytes` "
            f"({max_bytes:,}): send fewer sentences at once"
        )


@contextlib.contextmanager
def reading_reply(address: str) -> Iterator[None]:
    """Context that turns every error in reading a reply into a `ServingError`."""
    try:
        yield
    except Exception as error:
        what = one_line(f"{type(error).__name__}: {error}")
        raise ServingError(f"{address}: the reply is not valid ({what})") from error


def parse_place(place: str) -> dict[str, Any]:
    """The arguments of a `Client` for a model on a server, given in one string.

    Args:
        place: address and model, with a version or label if any: `host:port/en-de`,
            `http://host:port/en-de/versions/2`, `host:port/en-de/labels/stable`.

    Raises:
        ValueError: it has another form.

    >>> parse_place("localhost:8500/en-de/labels/stable")
    {'address': 'localhost:8500', 'model': 'en-de', 'label': 'stable'}
    """
    found = _PLACE.fullmatch(place)
    if not found:
        raise ValueError(
            "A served model is host:port/model, with /versions/N or /labels/NAME for "
            "a version other than the newest. Received: "
            f"{without_password(place)}"
        )
    parts: dict[str, Any] = {k: v for k, v in found.groupdict().items() if v}
    if "version" in parts:
        parts["version"] = int(parts["version"])
    return parts


def without_password(address: str) -> str:
    """An address for messages, without user and password."""
    return re.sub(r"^([a-z]+://)?.*@", r"\1", address)


def split_address(address: str) -> tuple[str, str]:
    """The scheme of an address, or `""`, and its target for gRPC.

    Raises:
        ValueError: it has no host, an impossible port, or a password that gRPC cannot
            send.
    """
    scheme, _, target = address.rpartition("://")
    # For other schemes gRPC resolves the name, and may find several servers.
    is_name = scheme not in _SCHEMES
    try:
        parts = urlsplit(f"//{target.lstrip('/') if is_name else target}")
        is_wrong = parts.port == 0 or not (parts.hostname or is_name)
    except ValueError:
        is_wrong = True
    if is_wrong or ("@" in target and not scheme.startswith("http")):
        raise ValueError(
            "`address` must be host:port, or http://host:port, with a port up to "
            f"65535 and without a password over gRPC. Received: "
            f"{without_password(address)}"
        )
    return scheme, address if is_name else target
