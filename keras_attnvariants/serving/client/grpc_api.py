"""A model on TensorFlow Serving over gRPC."""

from typing import Any

import grpc

from keras_attnvariants.serving import messages
from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Arrays
from keras_attnvariants.serving.calls import Call
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.client.exchange import Connection
from keras_attnvariants.serving.client.exchange import check_size
from keras_attnvariants.serving.client.exchange import error_of
from keras_attnvariants.serving.client.exchange import reading_reply
from keras_attnvariants.serving.client.exchange import split_address
from keras_attnvariants.serving.messages import protos

_METADATA = "signature_def"


class Server:
    """Requests for one model over one channel, from any thread.

    Attributes:
        address: for messages.
        max_bytes: largest size of a message in either direction, in bytes.
    """

    def __init__(self, connection: Connection) -> None:
        scheme, self.address = split_address(connection.address)
        self._spec = protos.ModelSpec(
            name=connection.model, version_label=connection.label
        )
        if connection.version is not None:
            self._spec.version.value = connection.version
        self._headers = [
            (name.lower(), value) for name, value in connection.headers.items()
        ]
        self.max_bytes = connection.max_bytes
        options = [
            ("grpc.max_send_message_length", connection.max_bytes),
            ("grpc.max_receive_message_length", connection.max_bytes),
            # A server that comes back is found again within a second.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 500),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        if scheme == "grpcs":
            credentials = grpc.ssl_channel_credentials()
            self._channel = grpc.secure_channel(self.address, credentials, options)
        else:
            self._channel = grpc.insecure_channel(self.address, options)

    def signatures(self, timeout: float) -> dict[str, Signature]:
        """The signatures; see `send` for `timeout` and errors."""
        message = protos.GetModelMetadataRequest(
            model_spec=self._spec, metadata_field=[_METADATA]
        )
        body = self.send("PredictionService/GetModelMetadata", message, timeout)
        with reading_reply(self.address):
            reply = protos.GetModelMetadataResponse.FromString(body)
            found = reply.metadata[_METADATA].value
            return messages.signatures_of(protos.SignatureDefMap.FromString(found))

    def predict(self, call: Call, inputs: Arrays, timeout: float) -> dict[str, Array]:
        """The outputs of a batch; see `send` for `timeout` and errors."""
        message = messages.predict_request(
            self._spec, call.signature.name, inputs, call.outputs
        )
        body = self.send("PredictionService/Predict", message, timeout)
        with reading_reply(self.address):
            found = dict(protos.PredictResponse.FromString(body).outputs)
            return {n: messages.from_proto(n, found[n]) for n in call.outputs}

    def send(self, method: str, message: Any, timeout: float) -> bytes:
        """Sends a request, and returns the body of the reply.

        Args:
            method: name of the service and of its method.
            message: the request.
            timeout: seconds to wait.

        Raises:
            ServingError: no reply came in time, or it reports an error.
        """
        body = message.SerializeToString()
        check_size(body, self.max_bytes)
        ask = self._channel.unary_unary(f"/tensorflow.serving.{method}")
        try:
            return ask(body, timeout=timeout, metadata=self._headers)
        except grpc.RpcError as error:
            details = error.details() or "no details"
            raise error_of(self.address, error.code().name, details) from error

    def close(self) -> None:
        """Closes the connections."""
        self._channel.close()
