"""Clients of TensorFlow Serving that translate with exported models."""

from collections.abc import Mapping
from collections.abc import Sequence
from types import TracebackType
from typing import Any
from typing import Self

from keras_attnvariants.serving.client.base import DEFAULT_SIGNATURE
from keras_attnvariants.serving.client.base import BaseClient
from keras_attnvariants.serving.client.steps import Plan
from keras_attnvariants.serving.client.steps import drive
from keras_attnvariants.serving.client.steps import drive_async
from keras_attnvariants.serving.client.tensors import Array
from keras_attnvariants.serving.client.tensors import Signature
from keras_attnvariants.serving.client.transports import AsyncGrpcTransport
from keras_attnvariants.serving.client.transports import AsyncHttpTransport
from keras_attnvariants.serving.client.transports import AsyncTransport
from keras_attnvariants.serving.client.transports import GrpcTransport
from keras_attnvariants.serving.client.transports import HttpTransport
from keras_attnvariants.serving.client.transports import Transport


class Client(BaseClient):
    """Translates with a model on TensorFlow Serving, over gRPC or REST.

    It imports neither TensorFlow nor Keras. Any number of threads may share it.

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

    Example:

    ```python
    with kav.serving.Client("localhost:8500", "en-de", label="stable") as client:
        client.translate(["Good morning."])
        client.predict({"text": ["Good morning."]}, "nbest", ["translations"])
    ```
    """

    def __init__(self, address: str, model: str, **options: Any) -> None:
        super().__init__(address, model, **options)
        self._transport: Transport = (
            HttpTransport(**self._http_options())
            if self.speaks_http
            else GrpcTransport(**self._grpc_options())
        )

    def translate(self, texts: Sequence[str]) -> list[str]:
        """One translation per text, in their order.

        Texts of about equal length travel together, `max_batch` at a time.

        Raises:
            ServingError: of the kind that says why; no translation is returned then.
        """
        return self._drive(self._plan_translate(texts))

    def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = DEFAULT_SIGNATURE,
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """The outputs of any signature.

        Args:
            inputs: lists or arrays by name, all with one row per sentence.
            signature: its name.
            outputs: names of those that are wanted; by default all.

        Returns:
            Arrays by name, with one row per sentence in their order; texts as objects.
            What differs in width between requests is padded with zeros or `""`.

        Raises:
            ValueError: the signature, an input or an output does not exist, or an
                input has another type or rank.
            ServingError: of the kind that says why.
        """
        return self._drive(self._plan_predict(inputs, signature, outputs))

    def signatures(self) -> dict[str, Signature]:
        """The signatures of the model, by name."""
        return self._drive(self._plan_signatures())

    def versions(self) -> dict[int, str]:
        """The state of every version on the server, such as `{1: "AVAILABLE"}`."""
        return self._drive(self._plan_versions())

    def close(self) -> None:
        """Ends the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _drive(self, plan: Plan[Any]) -> Any:
        return drive(plan, self._transport.send, self.together)


class AsyncClient(BaseClient):
    """The same for coroutines, with the arguments of `Client`.

    Use it within one event loop. Over REST every request waits in a thread.

    Example:

    ```python
    async with kav.serving.AsyncClient("localhost:8500", "en-de") as client:
        await client.translate(["Good morning."])
    ```
    """

    def __init__(self, address: str, model: str, **options: Any) -> None:
        super().__init__(address, model, **options)
        self._transport: AsyncTransport = (
            AsyncHttpTransport(**self._http_options())
            if self.speaks_http
            else AsyncGrpcTransport(**self._grpc_options())
        )

    async def translate(self, texts: Sequence[str]) -> list[str]:
        """As `Client.translate`."""
        return await self._drive(self._plan_translate(texts))

    async def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = DEFAULT_SIGNATURE,
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """As `Client.predict`."""
        return await self._drive(self._plan_predict(inputs, signature, outputs))

    async def signatures(self) -> dict[str, Signature]:
        """As `Client.signatures`."""
        return await self._drive(self._plan_signatures())

    async def versions(self) -> dict[int, str]:
        """As `Client.versions`."""
        return await self._drive(self._plan_versions())

    async def close(self) -> None:
        """Ends the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _drive(self, plan: Plan[Any]) -> Any:
        return await drive_async(plan, self._transport.send, self.together)
