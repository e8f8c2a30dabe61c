"""A model on TensorFlow Serving over gRPC."""

from typing import Any

import grpc
import grpc.aio

from keras_attnvariants.serving import messages
from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Arrays
from keras_attnvariants.serving.calls import Call
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.client.exchange import Connection
from keras_attnvariants.serving.client.exchange import Request
from keras_attnvariants.serving.client.exchange import check_address
from keras_attnvariants.serving.client.exchange import error_of
from keras_attnvariants.serving.messages import protos

_METADATA = "signature_def"


class Server:
    """Asks for one model over one channel, from any thread or from one event loop.

    Attributes:
        address: for messages.
        max_bytes: bytes of a message in either direction, at most.
    """

    def __init__(self, to: Connection) -> None:
        scheme, self.address = check_address(to.address)
        self._spec = protos.ModelSpec(name=to.model, version_label=to.label)
        if to.version is not None:
            self._spec.version.value = to.version
        self._headers = [(name.lower(), value) for name, value in to.headers.items()]
        self.max_bytes = to.max_bytes
        self._is_async = to.is_async
        options = [
            ("grpc.max_send_message_length", to.max_bytes),
            ("grpc.max_receive_message_length", to.max_bytes),
            # A server that comes back is found again within a second.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 500),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        library: Any = grpc.aio if to.is_async else grpc
        if scheme == "grpcs":
            credentials = grpc.ssl_channel_credentials()
            self._channel = library.secure_channel(self.address, credentials, options)
        else:
            self._channel = library.insecure_channel(self.address, options)

    def signatures(self) -> Request[dict[str, Signature]]:
        """Asks for the signatures."""
        message = protos.GetModelMetadataRequest(
            model_spec=self._spec, metadata_field=[_METADATA]
        )

        def read(body: bytes) -> dict[str, Signature]:
            reply = protos.GetModelMetadataResponse.FromString(body)
            found = reply.metadata[_METADATA].value
            return messages.signatures_of(protos.SignatureDefMap.FromString(found))

        return _request("PredictionService/GetModelMetadata", message, read)

    def versions(self) -> Request[dict[int, str]]:
        """Asks for the state of each version."""
        message = protos.GetModelStatusRequest(model_spec={"name": self._spec.name})

        def read(body: bytes) -> dict[int, str]:
            reply = protos.GetModelStatusResponse.FromString(body)
            return messages.states_of(reply)

        return _request("ModelService/GetModelStatus", message, read)

    def predict(self, call: Call, inputs: Arrays) -> Request[dict[str, Array]]:
        """Asks for the outputs of a batch."""
        message = messages.predict_request(
            self._spec, call.signature.name, inputs, call.outputs
        )

        def read(body: bytes) -> dict[str, Array]:
            found = dict(protos.PredictResponse.FromString(body).outputs)
            return {n: messages.from_proto(n, found[n]) for n in call.outputs}

        return _request("PredictionService/Predict", message, read)

    async def send(self, request: Request[Any], timeout: float) -> bytes:
        """The body of the reply; only if coroutines use it, others work meanwhile.

        Raises:
            ServingError: there is none in time, or it says that something is wrong.
        """
        method = self._channel.unary_unary(request.path)
        try:
            reply = method(request.body, timeout=timeout, metadata=self._headers)
            return await reply if self._is_async else reply
        except grpc.RpcError as error:
            details = error.details() or "no details"
            raise error_of(self.address, error.code().name, details) from error

    async def close(self) -> None:
        """Ends the connections."""
        closed = self._channel.close()
        if self._is_async:
            await closed


def _request(method: str, message: Any, read: Any) -> Request[Any]:
    return Request(f"/tensorflow.serving.{method}", message.SerializeToString(), read)
