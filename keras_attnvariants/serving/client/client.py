"""Clients of TensorFlow Serving that translate with exported models."""

from collections.abc import Mapping
from collections.abc import Sequence
from types import TracebackType
from typing import Any
from typing import Self

from keras_attnvariants.serving.client import batches
from keras_attnvariants.serving.client.errors import InvalidRequestError
from keras_attnvariants.serving.client.grpc_api import GrpcApi
from keras_attnvariants.serving.client.rest_api import RestApi
from keras_attnvariants.serving.client.steps import Plan
from keras_attnvariants.serving.client.steps import Request
from keras_attnvariants.serving.client.steps import Retries
from keras_attnvariants.serving.client.steps import Together
from keras_attnvariants.serving.client.steps import drive
from keras_attnvariants.serving.client.steps import drive_async
from keras_attnvariants.serving.client.steps import exchange
from keras_attnvariants.serving.client.tensors import Array
from keras_attnvariants.serving.client.tensors import Signature
from keras_attnvariants.serving.client.transports import AsyncGrpcTransport
from keras_attnvariants.serving.client.transports import AsyncHttpTransport
from keras_attnvariants.serving.client.transports import AsyncTransport
from keras_attnvariants.serving.client.transports import GrpcTransport
from keras_attnvariants.serving.client.transports import HttpTransport
from keras_attnvariants.serving.client.transports import Transport
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_positive

_DEFAULT = "serving_default"
_TRANSLATIONS = "translations"


class BaseClient:
    """What a client says, without sending it: see `Client` for the arguments."""

    def __init__(
        self,
        address: str,
        model: str,
        *,
        version: int | None = None,
        label: str | None = None,
        max_batch: int = 64,
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
        self.max_batch = check_integer("max_batch", max_batch)
        self.timeout = check_positive("timeout", timeout)
        self.retries = Retries(check_integer("retries", retries, minimum=0))
        self.together = check_integer("together", together)
        self.max_message_bytes = check_integer("max_message_bytes", max_message_bytes)
        self.headers = dict(headers or {})
        api = RestApi if self.speaks_http else GrpcApi
        self._api = api(model, version, label)
        self._signatures: dict[str, Signature] = {}

    @property
    def speaks_http(self) -> bool:
        """Whether the address is one of REST; otherwise it is one of gRPC."""
        return self.address.startswith(("http://", "https://"))

    def _grpc_options(self) -> dict[str, Any]:
        """The arguments of a transport over gRPC."""
        tls = self.address.startswith("grpcs://")
        address = self.address.removeprefix("grpcs://").removeprefix("grpc://")
        return {
            "address": address,
            "headers": self.headers,
            "tls": tls,
            "max_bytes": self.max_message_bytes,
        }

    def _http_options(self) -> dict[str, Any]:
        """The arguments of a transport over HTTP."""
        return {
            "address": self.address,
            "headers": self.headers,
            "max_bytes": self.max_message_bytes,
        }

    def _exchange(self, request: Request) -> Plan[bytes]:
        return exchange(request, self.timeout, self.retries)

    def _plan_signatures(self) -> Plan[dict[str, Signature]]:
        """Asks for the signatures once."""
        if not self._signatures:
            body = yield from self._exchange(self._api.signatures_request())
            self._signatures = self._api.signatures(body)
        return dict(self._signatures)

    def _plan_versions(self) -> Plan[dict[int, str]]:
        body = yield from self._exchange(self._api.versions_request())
        return self._api.versions(body)

    def _plan_predict(
        self,
        inputs: Mapping[str, Any],
        signature: str,
        outputs: Sequence[str] | None,
    ) -> Plan[dict[str, Array]]:
        try:
            known = yield from self._plan_signatures()
            function = _chosen("signature", signature, known)
            names = list(function.outputs if outputs is None else outputs)
            for name in names:
                _chosen("outputs", name, function.outputs)
            arrays = batches.checked_inputs(function, inputs)
            parts = list(batches.batches(function, arrays, self.max_batch))
            found = yield Together(
                [self._plan_batch(function, part, names) for _, part in parts]
            )
        except (ValueError, InvalidRequestError):
            # A new version may have other signatures.
            self._signatures = {}
            raise
        return batches.joined([rows for rows, _ in parts], found)

    def _plan_batch(
        self, signature: Signature, inputs: Mapping[str, Array], outputs: Sequence[str]
    ) -> Plan[dict[str, Array]]:
        request = self._api.predict_request(signature, inputs, outputs)
        body = yield from self._exchange(request)
        return self._api.prediction(signature, body, outputs)

    def _plan_translate(self, texts: Sequence[str]) -> Plan[list[str]]:
        if isinstance(texts, str):
            raise TypeError(f"`texts` must be a list of strings. Received: {texts!r}")
        if not len(texts):
            return []
        found = yield from self._plan_predict(
            {"text": texts}, _DEFAULT, [_TRANSLATIONS]
        )
        translations: list[str] = found[_TRANSLATIONS].tolist()
        return translations


class Client(BaseClient):
    """Translates with a model on TensorFlow Serving, over gRPC or REST.

    It imports neither TensorFlow nor Keras. Any number of threads may share it.

    Args:
        address: `host:port` or `grpc://host:port` for gRPC, `grpcs://host:port` for
            gRPC with TLS, `http://host:port` or `https://host:port` for REST.
        model: its name on the server.
        version: number of the version to ask; by default the newest that is loaded.
        label: the same by its label, such as `"stable"`.
        max_batch: sentences in a request, at most; as the model was exported.
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
        signature: str = _DEFAULT,
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
        signature: str = _DEFAULT,
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


def _chosen(what: str, name: str, choices: Mapping[str, Any]) -> Any:
    """What a name stands for.

    Raises:
        ValueError: nothing; the message lists the names there are.
    """
    if name in choices:
        return choices[name]
    listed = ", ".join(repr(choice) for choice in sorted(choices))
    raise ValueError(f"`{what}` must be one of {listed}. Received: {name!r}")
