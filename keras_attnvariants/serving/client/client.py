"""Clients of TensorFlow Serving that translate with exported models."""

import asyncio
import time
from abc import ABC
from abc import abstractmethod
from collections.abc import Callable
from collections.abc import Coroutine
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any
from typing import Self

from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Arrays
from keras_attnvariants.serving.calls import Call
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import checked_call
from keras_attnvariants.serving.calls import limit_in
from keras_attnvariants.serving.calls import listed
from keras_attnvariants.serving.client.exchange import Connection
from keras_attnvariants.serving.client.exchange import InvalidRequestError
from keras_attnvariants.serving.client.exchange import Request
from keras_attnvariants.serving.client.exchange import T
from keras_attnvariants.serving.client.exchange import answer
from keras_attnvariants.serving.client.exchange import check_address
from keras_attnvariants.serving.client.exchange import reading
from keras_attnvariants.serving.translator import DEFAULT
from keras_attnvariants.serving.translator import BaseTranslator
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_positive

_MAX_BATCH = 64  # as models are exported unless told otherwise


class _BaseClient(ABC):
    """All that clients do, as coroutines; subclasses wait in threads or event loops."""

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
        self.learns_max_batch = max_batch is None
        limit = _MAX_BATCH if max_batch is None else max_batch
        self.max_batch = check_integer("max_batch", limit)
        self.timeout = check_positive("timeout", timeout)
        self.retries = check_integer("retries", retries, minimum=0)
        self.together = check_integer("together", together)
        check_integer("max_message_bytes", max_message_bytes)
        self._known: dict[str, Signature] = {}
        scheme, _ = check_address(address)
        # Each brings a library that the other does not need.
        protocol = "rest_api" if scheme in ("http", "https") else "grpc_api"
        found = import_module(f"keras_attnvariants.serving.client.{protocol}")
        last = headers or {}, max_message_bytes, self._is_async
        self._server = found.Server(Connection(address, model, version, label, *last))

    @abstractmethod
    async def _sleep(self, seconds: float) -> None:
        """Waits."""

    @abstractmethod
    async def _all(
        self, ask: Callable[[Arrays], Coroutine[Any, Any, T]], parts: Sequence[Arrays]
    ) -> list[T]:
        """The answers for all parts, `together` of them asked for at once."""

    async def _ask_signatures(self) -> dict[str, Signature]:
        if not self._known:
            self._known = await self._ask(self._server.signatures())
        return dict(self._known)

    async def _ask_signature(self, name: str) -> Signature:
        known = await self._ask_signatures()
        return known[check_choice("signature", name, sorted(known))]

    async def _predict(
        self,
        inputs: Mapping[str, Any],
        signature: str,
        outputs: Sequence[str] | None,
    ) -> dict[str, Array]:
        """The outputs, from the batches that the server accepts."""
        try:
            found = await self._ask_signature(signature)
            call = checked_call(found, inputs, outputs)
            while True:
                size = self.max_batch
                try:
                    return await self._predict_batches(call, size)
                except InvalidRequestError as refusal:
                    limit = limit_in(str(refusal))
                    if not self.learns_max_batch or not 0 < limit < size:
                        raise
                    self.max_batch = limit
        except (ValueError, InvalidRequestError):
            # A new version may have other signatures.
            self._known = {}
            raise

    async def _predict_batches(self, call: Call, size: int) -> dict[str, Array]:
        """Calls with so many sentences at a time, several at once."""

        async def ask(inputs: Arrays) -> dict[str, Array]:
            return await self._ask(self._server.predict(call, inputs))

        rows, parts = zip(*call.batches(size), strict=True)
        found = await self._all(ask, parts)
        with reading(self._server.address):
            return call.joined(rows, found)

    async def _ask(self, request: Request[T]) -> T:
        tries = self.timeout, self.retries
        return await answer(self._server, request, self._sleep, *tries)


def _finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that blocks where others would wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a blocking client must not wait for an event loop")


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
        max_message_bytes: bytes of a request or a reply, at most.
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
        return _finished(self._ask_signatures())

    def versions(self) -> dict[int, str]:
        """The state of every version on the server, such as `{1: "AVAILABLE"}`."""
        return _finished(self._ask(self._server.versions()))

    def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = DEFAULT,
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """See `BaseTranslator.predict`."""
        return _finished(self._predict(inputs, signature, outputs))

    def close(self) -> None:
        """Ends the connections."""
        _finished(self._server.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _signature(self, name: str) -> Signature:
        return _finished(self._ask_signature(name))

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def _all(
        self, ask: Callable[[Arrays], Coroutine[Any, Any, T]], parts: Sequence[Arrays]
    ) -> list[T]:
        if len(parts) == 1:
            return [await ask(parts[0])]
        with ThreadPoolExecutor(self.together) as pool:
            # After a failure those that wait do not begin.
            return list(pool.map(lambda part: _finished(ask(part)), parts))


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
        return found["translations"].tolist()

    async def signatures(self) -> dict[str, Signature]:
        """As `Client.signatures`."""
        return await self._ask_signatures()

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
        return await self._predict(inputs, signature, outputs)

    async def close(self) -> None:
        """Ends the connections."""
        await self._server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _all(
        self, ask: Callable[[Arrays], Coroutine[Any, Any, T]], parts: Sequence[Arrays]
    ) -> list[T]:
        places = asyncio.Semaphore(self.together)

        async def run(inputs: Arrays) -> T:
            async with places:
                return await ask(inputs)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run(part)) for part in parts]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]
