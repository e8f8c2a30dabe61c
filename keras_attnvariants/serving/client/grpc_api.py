"""A model on TensorFlow Serving over gRPC."""

import contextlib
from collections.abc import Iterator
from typing import Any

import grpc
import grpc.aio

from keras_attnvariants.serving import messages
from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Arrays
from keras_attnvariants.serving.calls import Call
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.client.exchange import Request
from keras_attnvariants.serving.client.exchange import error_of_code

_METADATA = "signature_def"


class GrpcServer:
    """Asks for one model over one channel, from any thread or from one event loop.

    Args:
        target: `host:port`, or another name that gRPC resolves.
        tls: whether to encrypt.
        model, version, label: as for `Client`.
        headers: sent with every request.
        max_bytes: of a message in either direction.
        is_async: whether coroutines use it.

    Attributes:
        address: for messages.
    """

    def __init__(
        self,
        target: str,
        tls: bool,
        model: str,
        version: int | None,
        label: str | None,
        *,
        headers: dict[str, str],
        max_bytes: int,
        is_async: bool,
    ) -> None:
        self.address = target
        self._spec = messages.ModelSpec(name=model, version_label=label)
        if version is not None:
            self._spec.version.value = version
        self._headers = [(name.lower(), value) for name, value in headers.items()]
        self._max_bytes = max_bytes
        options = [
            ("grpc.max_send_message_length", max_bytes),
            ("grpc.max_receive_message_length", max_bytes),
            # A server that comes back is found again within a second.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 500),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        library: Any = grpc.aio if is_async else grpc
        if tls:
            credentials = grpc.ssl_channel_credentials()
            self._channel = library.secure_channel(target, credentials, options)
        else:
            self._channel = library.insecure_channel(target, options)

    def signatures(self) -> Request[dict[str, Signature]]:
        """Asks for the signatures."""
        message = messages.GetModelMetadataRequest(
            model_spec=self._spec, metadata_field=[_METADATA]
        )

        def read(body: bytes) -> dict[str, Signature]:
            reply = messages.GetModelMetadataResponse.FromString(body)
            found = reply.metadata[_METADATA].value
            return messages.signatures_of(messages.SignatureDefMap.FromString(found))

        return _request("PredictionService/GetModelMetadata", message, read)

    def versions(self) -> Request[dict[int, str]]:
        """Asks for the state of each version."""
        message = messages.GetModelStatusRequest(model_spec={"name": self._spec.name})

        def read(body: bytes) -> dict[int, str]:
            reply = messages.GetModelStatusResponse.FromString(body)
            return messages.states_of(reply)

        return _request("ModelService/GetModelStatus", message, read)

    def predict(self, call: Call, inputs: Arrays) -> Request[dict[str, Array]]:
        """Asks for the outputs of a batch."""
        message = messages.predict_request(
            self._spec, call.signature.name, inputs, call.outputs
        )

        def read(body: bytes) -> dict[str, Array]:
            found = dict(messages.PredictResponse.FromString(body).outputs)
            return {n: messages.from_proto(n, found[n]) for n in call.outputs}

        return _request("PredictionService/Predict", message, read)

    def send(self, request: Request[Any], timeout: float) -> bytes:
        """The body of the reply.

        Raises:
            ServingError: there is none in time, or it says that something is wrong.
        """
        with self._failures():
            reply: bytes = self._call(request, timeout)
        return reply

    async def send_async(self, request: Request[Any], timeout: float) -> bytes:
        """As `send`, while others work."""
        with self._failures():
            reply: bytes = await self._call(request, timeout)
        return reply

    def close(self) -> None:
        """Ends the connections."""
        self._channel.close()

    async def close_async(self) -> None:
        """As `close`."""
        await self._channel.close()

    def _call(self, request: Request[Any], timeout: float) -> Any:
        request.check_size(self._max_bytes)
        method = self._channel.unary_unary(request.path)
        return method(request.body, timeout=timeout, metadata=self._headers)

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Gives errors of gRPC their names."""
        try:
            yield
        except grpc.RpcError as error:
            details = error.details() or "no details"
            raise error_of_code(self.address, error.code().name, details) from error


def _request(method: str, message: Any, read: Any) -> Request[Any]:
    return Request(f"/tensorflow.serving.{method}", message.SerializeToString(), read)
