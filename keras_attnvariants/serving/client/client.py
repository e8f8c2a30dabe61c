"""Clients of TensorFlow Serving that translate with exported models."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Self

from keras_attnvariants.serving.base import DEFAULT
from keras_attnvariants.serving.base import BaseTranslator
from keras_attnvariants.serving.calls import listed
from keras_attnvariants.serving.client.base import BaseClient
from keras_attnvariants.serving.client.base import chosen
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


class Client(BaseClient, BaseTranslator):
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

    def __init__(self, address: str, model: str, **options: Any) -> None:
        super().__init__(address, model, **options)
        self._transport: Transport = (
            HttpTransport(**self._http_options())
            if self.speaks_http
            else GrpcTransport(**self._grpc_options())
        )

    def signatures(self) -> dict[str, Signature]:
        """The signatures of the model, by name."""
        return self._drive(self._plan_signatures())

    def _signature(self, name: str) -> Signature:
        return chosen("signature", name, self.signatures())

    def _predict(
        self, inputs: Mapping[str, Any], signature: str, outputs: Sequence[str] | None
    ) -> dict[str, Array]:
        return self._drive(self._plan_predict(inputs, signature, outputs))

    def versions(self) -> dict[int, str]:
        """The state of every version on the server, such as `{1: "AVAILABLE"}`."""
        return self._drive(self._plan_versions())

    def close(self) -> None:
        """Ends the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
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
        inputs = {"text": listed("texts", texts)}
        if not inputs["text"]:
            return []
        found = await self.predict(inputs, outputs=["translations"])
        translations: list[str] = found["translations"].tolist()
        return translations

    async def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = DEFAULT,
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

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _drive(self, plan: Plan[Any]) -> Any:
        return await drive_async(plan, self._transport.send, self.together)
