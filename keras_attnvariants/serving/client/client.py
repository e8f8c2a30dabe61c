"""Clients of TensorFlow Serving that translate with exported models."""

import asyncio
import contextlib
import re
import time
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from typing import Any
from typing import Self
from urllib.parse import urlsplit

from google.protobuf.json_format import ParseError
from google.protobuf.message import DecodeError

from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Arrays
from keras_attnvariants.serving.calls import Call
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import checked_call
from keras_attnvariants.serving.calls import chosen
from keras_attnvariants.serving.calls import limit_in
from keras_attnvariants.serving.calls import listed
from keras_attnvariants.serving.client.exchange import InvalidRequestError
from keras_attnvariants.serving.client.exchange import Request
from keras_attnvariants.serving.client.exchange import ServerUnavailableError
from keras_attnvariants.serving.client.exchange import ServingError
from keras_attnvariants.serving.client.exchange import T
from keras_attnvariants.serving.client.exchange import Tries
from keras_attnvariants.serving.client.exchange import one_line
from keras_attnvariants.serving.translator import DEFAULT
from keras_attnvariants.serving.translator import BaseTranslator
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_positive

if TYPE_CHECKING:
    from keras_attnvariants.serving.client.grpc_api import GrpcServer
    from keras_attnvariants.serving.client.rest_api import RestServer

_MAX_BATCH = 64  # as models are exported unless told otherwise
_SCHEMES = ("", "grpc", "grpcs", "http", "https")
_PLACE = re.compile(
    r"(?P<address>(?:[a-z]+://)?[^/]+)/(?P<model>[^/:@]+)"
    r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/]+))?"
)
# What reading a reply raises that is not what it should be.
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    DecodeError,
    LookupError,
    ParseError,
    RecursionError,
    TypeError,
    ValueError,
)


class _BaseClient:
    """The arguments of both clients, and what neither waits for."""

    _is_async: bool

    def __init__(
        self,
        address: str,
        model: str,
        *,
        version: int | None = None,
        label: str | None = None,
        max_batch: int | None = None,
        timeout: float = 60.0,
        retries: int = 5,
        together: int = 4,
        max_message_bytes: int = 1 << 24,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if version is not None and label is not None:
            raise ValueError(
                "Give either `version` or `label`. Received: "
                f"version={version}, label={label!r}"
            )
        if not model:
            raise ValueError(f"`model` must be a name. Received: {model!r}")
        self.address = address
        self.learns_max_batch = max_batch is None
        self.max_batch = check_integer(
            "max_batch", _MAX_BATCH if max_batch is None else max_batch
        )
        self.timeout = check_positive("timeout", timeout)
        self.retries = check_integer("retries", retries, minimum=0)
        self.together = check_integer("together", together)
        self.max_message_bytes = check_integer("max_message_bytes", max_message_bytes)
        self.headers = dict(headers or {})
        self._signatures: dict[str, Signature] = {}
        self._server = self._open(model, version, label)

    def _open(
        self, model: str, version: int | None, label: str | None
    ) -> "GrpcServer | RestServer":
        scheme, target = _checked_address(self.address)
        options: dict[str, Any] = {
            "headers": self.headers,
            "max_bytes": self.max_message_bytes,
            "is_async": self._is_async,
        }
        # Each brings a library that the other does not need.
        if scheme in ("http", "https"):
            from keras_attnvariants.serving.client.rest_api import RestServer

            shown = without_password(self.address)
            return RestServer(self.address, shown, model, version, label, **options)
        from keras_attnvariants.serving.client.grpc_api import GrpcServer

        return GrpcServer(target, scheme == "grpcs", model, version, label, **options)

    def _call(
        self,
        known: Mapping[str, Signature],
        inputs: Mapping[str, Any],
        signature: str,
        outputs: Sequence[str] | None,
    ) -> Call:
        return checked_call(chosen("signature", signature, known), inputs, outputs)

    @contextlib.contextmanager
    def _forgetting(self) -> Iterator[None]:
        """Asks for signatures again after an error: a new version may have others."""
        try:
            yield
        except (ValueError, InvalidRequestError):
            self._signatures = {}
            raise

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Gives every error of reading a reply one name."""
        try:
            yield
        except _UNREADABLE as error:
            what = one_line(f"{type(error).__name__}: {error}")
            raise ServingError(
                f"{self._server.address}: the reply is not what was asked for ({what})"
            ) from error

    def _learn(self, refusal: InvalidRequestError, size: int) -> None:
        """Takes fewer sentences than `size` at once if the server says how many.

        Raises:
            InvalidRequestError: it does not, or the client was told how many.
        """
        limit = limit_in(str(refusal))
        if not self.learns_max_batch or not 0 < limit < size:
            raise refusal
        self.max_batch = limit


class Client(_BaseClient, BaseTranslator):
    """Translates with a model on TensorFlow Serving, over gRPC or REST.

    Beside its own methods it has those of `BaseTranslator`. It imports neither
    TensorFlow nor Keras. Any number of threads may share it.

    Args:
        address: `host:port` or `grpc://host:port` for gRPC, `grpcs://host:port` for
            gRPC with TLS, `http://host:port` or `https://host:port` for REST.
        model: its name on the server.
        version: number of the version to ask; by default the newest that is loaded.
        label: the same by its label, such as `"stable"`.
        max_batch: sentences in a request, at most; by default 64, as models are
            exported by default, or less as soon as the server says so.
        timeout: seconds for a request, those of sending it again included.
        retries: times that a request is sent again while the server is not
            available, after pauses that double and vary by chance. Nothing else is
            sent again.
        together: requests of one call that are on their way at once.
        max_message_bytes: of a request or a reply.
        headers: sent with every request, such as `{"authorization": "Bearer …"}`.

    Raises:
        ValueError: an argument is out of range.
        ServingError: by a method, of the kind that says why; nothing is returned then.

    Example:

    ```python
    with kav.serving.Client("localhost:8500", "en-de", label="stable") as client:
        client.translate(["Good morning."])
        [[best, *others]] = client.nbest(["Good morning."])
        client.predict({"text": ["Good morning."]}, "nbest", ["translations"])
    ```
    """

    _is_async = False

    def signatures(self) -> dict[str, Signature]:
        """The signatures of the model, by name."""
        if not self._signatures:
            self._signatures = self._ask(self._server.signatures())
        return dict(self._signatures)

    def versions(self) -> dict[int, str]:
        """The state of every version on the server, such as `{1: "AVAILABLE"}`."""
        return self._ask(self._server.versions())

    def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = DEFAULT,
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """See `BaseTranslator.predict`."""
        with self._forgetting():
            call = self._call(self.signatures(), inputs, signature, outputs)
            while True:
                size = self.max_batch
                try:
                    return self._predict_batches(call, size)
                except InvalidRequestError as refusal:
                    self._learn(refusal, size)

    def close(self) -> None:
        """Ends the connections."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _signature(self, name: str) -> Signature:
        return chosen("signature", name, self.signatures())

    def _predict_batches(self, call: Call, size: int) -> dict[str, Array]:
        """Calls with so many sentences at a time, several at once."""

        def run(inputs: Arrays) -> dict[str, Array]:
            return self._ask(self._server.predict(call, inputs))

        rows, parts = zip(*call.batches(size), strict=True)
        if len(parts) == 1:
            found = [run(parts[0])]
        else:
            with ThreadPoolExecutor(self.together) as pool:
                # After a failure those that wait do not begin.
                found = list(pool.map(run, parts))
        with self._reading():
            return call.joined(rows, found)

    def _ask(self, request: Request[T]) -> T:
        body = self._send(request)
        with self._reading():
            return request.read(body)

    def _send(self, request: Request[Any]) -> bytes:
        """The body of the reply to a request that is sent until somebody is there."""
        tries = Tries(self.timeout, self.retries)
        while True:
            try:
                return self._server.send(request, tries.left())
            except ServerUnavailableError as error:
                time.sleep(tries.pause(error))


class AsyncClient(_BaseClient):
    """The same for coroutines, with the arguments of `Client`.

    Use it within one event loop.

    Example:

    ```python
    async with kav.serving.AsyncClient("localhost:8500", "en-de") as client:
        await client.translate(["Good morning."])
    ```
    """

    _is_async = True

    async def translate(self, texts: Sequence[str]) -> list[str]:
        """As `Client.translate`."""
        inputs = {"text": listed("texts", texts)}
        if not inputs["text"]:
            return []
        found = await self.predict(inputs, outputs=["translations"])
        translations: list[str] = found["translations"].tolist()
        return translations

    async def signatures(self) -> dict[str, Signature]:
        """As `Client.signatures`."""
        if not self._signatures:
            self._signatures = await self._ask(self._server.signatures())
        return dict(self._signatures)

    async def versions(self) -> dict[int, str]:
        """As `Client.versions`."""
        return await self._ask(self._server.versions())

    async def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = DEFAULT,
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """As `Client.predict`."""
        with self._forgetting():
            call = self._call(await self.signatures(), inputs, signature, outputs)
            while True:
                size = self.max_batch
                try:
                    return await self._predict_batches(call, size)
                except InvalidRequestError as refusal:
                    self._learn(refusal, size)

    async def close(self) -> None:
        """Ends the connections."""
        await self._server.close_async()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _predict_batches(self, call: Call, size: int) -> dict[str, Array]:
        """Calls with so many sentences at a time, several at once."""
        places = asyncio.Semaphore(self.together)

        async def run(inputs: Arrays) -> dict[str, Array]:
            async with places:
                return await self._ask(self._server.predict(call, inputs))

        rows, parts = zip(*call.batches(size), strict=True)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run(part)) for part in parts]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        with self._reading():
            return call.joined(rows, [task.result() for task in tasks])

    async def _ask(self, request: Request[T]) -> T:
        body = await self._send(request)
        with self._reading():
            return request.read(body)

    async def _send(self, request: Request[Any]) -> bytes:
        """The body of the reply to a request that is sent until somebody is there."""
        tries = Tries(self.timeout, self.retries)
        while True:
            try:
                return await self._server.send_async(request, tries.left())
            except ServerUnavailableError as error:
                await asyncio.sleep(tries.pause(error))


def parse_place(place: str) -> dict[str, Any]:
    """The arguments of a `Client` for a model on a server, given in one string.

    Args:
        place: address and model, with a version or label if any: `host:port/en-de`,
            `http://host:port/en-de/versions/2`, `host:port/en-de/labels/stable`.

    Raises:
        ValueError: it is something else.

    >>> parse_place("localhost:8500/en-de/labels/stable")
    {'address': 'localhost:8500', 'model': 'en-de', 'label': 'stable'}
    """
    found = _PLACE.fullmatch(place)
    if not found:
        raise ValueError(
            "A served model is host:port/model, with /versions/N or /labels/NAME if "
            "it shall not be the newest version. Received: "
            f"{without_password(place)}"
        )
    parts: dict[str, Any] = {k: v for k, v in found.groupdict().items() if v}
    if "version" in parts:
        parts["version"] = int(parts["version"])
    return parts


def without_password(address: str) -> str:
    """An address for messages, without user and password."""
    return re.sub(r"^([a-z]+://)?.*@", r"\1", address)


def _checked_address(address: str) -> tuple[str, str]:
    """The scheme of an address, or `""`, and what gRPC is told.

    Raises:
        ValueError: it has no host, an impossible port, or a password that gRPC cannot
            send.
    """
    scheme, _, target = address.rpartition("://")
    if scheme not in _SCHEMES:
        return scheme, address  # a kind of name that gRPC resolves
    try:
        parts = urlsplit(f"//{target}")
        is_wrong = not parts.hostname or parts.port == 0
    except ValueError:
        is_wrong = True
    if is_wrong or ("@" in target and not scheme.startswith("http")):
        raise ValueError(
            "`address` must be host:port, or http://host:port, with a port up to "
            f"65535 and without a password over gRPC. Received: "
            f"{without_password(address)}"
        )
    return scheme, target
