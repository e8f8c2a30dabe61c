"""Ways to send a request and get the body of the reply: gRPC and HTTP."""

import asyncio
import http.client
import json
import time
import urllib.parse
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from typing import Protocol

from keras_attnvariants.serving.client.errors import DeadlineError
from keras_attnvariants.serving.client.errors import MessageTooLargeError
from keras_attnvariants.serving.client.errors import ServerUnavailableError
from keras_attnvariants.serving.client.errors import ServingError
from keras_attnvariants.serving.client.errors import error_of_code
from keras_attnvariants.serving.client.errors import error_of_status
from keras_attnvariants.serving.client.errors import one_line
from keras_attnvariants.serving.client.steps import Send

_CHUNK = 1 << 16


class Transport(Protocol):
    """Sends requests and waits for the replies."""

    def send(self, step: Send) -> bytes:
        """The body of the reply."""

    def close(self) -> None:
        """Ends the connections."""


class AsyncTransport(Protocol):
    """Sends requests and lets others work until the replies come."""

    async def send(self, step: Send) -> bytes:
        """The body of the reply."""

    async def close(self) -> None:
        """Ends the connections."""


class GrpcTransport:
    """Sends over one channel of gRPC, from any thread.

    Args:
        address: `host:port`.
        headers: sent with every request.
        tls: whether to encrypt.
        max_bytes: of a message in either direction.
    """

    def __init__(
        self, address: str, headers: Mapping[str, str], tls: bool, max_bytes: int
    ) -> None:
        import grpc

        self._address = address
        self._headers = [(name.lower(), value) for name, value in headers.items()]
        self._max_bytes = max_bytes
        self._channel = _channel(grpc, address, tls, max_bytes)

    def send(self, step: Send) -> bytes:
        """The body of the reply, or a `ServingError`."""
        import grpc

        check_size(step, self._max_bytes)
        call = self._channel.unary_unary(step.request.path)
        try:
            reply: bytes = call(
                step.request.body, timeout=step.timeout, metadata=self._headers
            )
        except grpc.RpcError as error:
            raise _grpc_error(self._address, error) from error
        return reply

    def close(self) -> None:
        """Ends the connections."""
        self._channel.close()


class AsyncGrpcTransport:
    """The same for coroutines of one event loop."""

    def __init__(
        self, address: str, headers: Mapping[str, str], tls: bool, max_bytes: int
    ) -> None:
        import grpc.aio

        self._address = address
        self._headers = [(name.lower(), value) for name, value in headers.items()]
        self._max_bytes = max_bytes
        self._channel = _channel(grpc.aio, address, tls, max_bytes)

    async def send(self, step: Send) -> bytes:
        """The body of the reply, or a `ServingError`."""
        import grpc

        check_size(step, self._max_bytes)
        call = self._channel.unary_unary(step.request.path)
        try:
            reply: bytes = await call(
                step.request.body, timeout=step.timeout, metadata=self._headers
            )
        except grpc.RpcError as error:
            raise _grpc_error(self._address, error) from error
        return reply

    async def close(self) -> None:
        """Ends the connections."""
        await self._channel.close()


class HttpTransport:
    """Sends each request over a connection of its own, from any thread.

    Args:
        address: `http://host:port` or `https://host:port`, with or without a path.
        headers: sent with every request.
        max_bytes: of a body in either direction.
    """

    def __init__(
        self, address: str, headers: Mapping[str, str], max_bytes: int
    ) -> None:
        self._address = address
        parts = urllib.parse.urlsplit(address)
        if not parts.hostname:
            raise ValueError(
                f"`address` must be host:port or http://host:port. Received: {address}"
            )
        self._connect: Callable[..., http.client.HTTPConnection] = (
            http.client.HTTPSConnection
            if parts.scheme == "https"
            else http.client.HTTPConnection
        )
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Content-Type": "application/json", **headers}
        self._max_bytes = max_bytes

    def send(self, step: Send) -> bytes:
        """The body of the reply, or a `ServingError`."""
        check_size(step, self._max_bytes)
        end = time.monotonic() + step.timeout
        connection = self._connect(
            self._host, self._port, timeout=max(step.timeout, 1e-3)
        )
        try:
            method = "GET" if step.request.body is None else "POST"
            path = self._prefix + step.request.path
            connection.request(method, path, step.request.body, self._headers)
            reply = connection.getresponse()
            body = self._body(connection, reply, end)
        except TimeoutError as error:
            raise DeadlineError(
                f"{self._address}: no reply in {step.timeout:.3g} seconds"
            ) from error
        except ServingError:
            raise
        except (OSError, http.client.HTTPException) as error:
            what = one_line(str(error)) or type(error).__name__
            raise ServerUnavailableError(f"{self._address}: {what}") from error
        finally:
            connection.close()
        if reply.status != 200:
            raise error_of_status(self._address, reply.status, _reason(body))
        return body

    def _body(self, connection: Any, reply: Any, end: float) -> bytes:
        """The body, if it is whole in time and not too large."""
        parts: list[bytes] = []
        size = 0
        while chunk := reply.read1(_CHUNK):
            parts.append(chunk)
            size += len(chunk)
            if size > self._max_bytes:
                raise MessageTooLargeError(
                    f"{self._address}: the reply has more bytes than "
                    f"`max_message_bytes` ({self._max_bytes:,})"
                )
            if (left := end - time.monotonic()) <= 0:
                raise TimeoutError
            if connection.sock is not None:
                connection.sock.settimeout(left)
        if reply.length:
            raise http.client.IncompleteRead(b"", reply.length)
        return b"".join(parts)

    def close(self) -> None:
        """Nothing is left open."""


class AsyncHttpTransport:
    """The same for coroutines; each request waits in a thread."""

    def __init__(
        self, address: str, headers: Mapping[str, str], max_bytes: int
    ) -> None:
        self._transport = HttpTransport(address, headers, max_bytes)

    async def send(self, step: Send) -> bytes:
        """The body of the reply, or a `ServingError`."""
        return await asyncio.to_thread(self._transport.send, step)

    async def close(self) -> None:
        """Nothing is left open."""


def check_size(step: Send, max_bytes: int) -> None:
    """Raises unless a request may be sent.

    Raises:
        MessageTooLargeError: it has too many bytes.
    """
    size = len(step.request.body or b"")
    if size > max_bytes:
        raise MessageTooLargeError(
            f"The request has {size:,} bytes, more than `max_message_bytes` "
            f"({max_bytes:,}): send fewer sentences at once"
        )


def _channel(module: Any, address: str, tls: bool, max_bytes: int) -> Any:
    """A channel of `grpc` or `grpc.aio`."""
    import grpc

    options = [
        ("grpc.max_send_message_length", max_bytes),
        ("grpc.max_receive_message_length", max_bytes),
        # A server that comes back is found again within a second.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 500),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]
    if tls:
        credentials = grpc.ssl_channel_credentials()
        return module.secure_channel(address, credentials, options)
    return module.insecure_channel(address, options)


def _grpc_error(address: str, error: Any) -> ServingError:
    return error_of_code(address, error.code().name, error.details() or "no details")


def _reason(body: bytes) -> str:
    """What the body of an error says: TensorFlow Serving sends JSON, proxies do not."""
    text = body.decode("utf-8", "replace")
    if text.startswith("{"):
        try:
            return str(json.loads(text).get("error", text))
        except (ValueError, RecursionError):
            return text
    return text
