"""Why a server did not answer: an exception each, with a message of one line."""

_LONGEST = 400  # characters of what a server said


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
    """The first characters of a text, without line breaks."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
