"""The gRPC interface of TensorFlow Serving: requests as bytes, replies as arrays."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import DecodeError

from keras_attnvariants.serving import messages
from keras_attnvariants.serving.client.errors import ServingError
from keras_attnvariants.serving.client.steps import Request
from keras_attnvariants.serving.client.tensors import Array
from keras_attnvariants.serving.client.tensors import Signature
from keras_attnvariants.serving.client.tensors import from_proto
from keras_attnvariants.serving.client.tensors import spec_of
from keras_attnvariants.serving.client.tensors import to_proto

_METADATA = "signature_def"


class GrpcApi:
    """Speaks the protocol for one model.

    Args:
        model: its name on the server.
        version, label: which version of it; by default the newest.
    """

    def __init__(self, model: str, version: int | None, label: str | None) -> None:
        self.spec = messages.ModelSpec(name=model)
        if version is not None:
            self.spec.version.value = version
        if label is not None:
            self.spec.version_label = label

    def signatures_request(self) -> Request:
        """Asks for the signatures."""
        request = messages.GetModelMetadataRequest(
            model_spec=self.spec, metadata_field=[_METADATA]
        )
        return _request("PredictionService/GetModelMetadata", request)

    def signatures(self, body: bytes) -> dict[str, Signature]:
        """The signatures in a reply."""
        reply = _parsed(messages.GetModelMetadataResponse, body)
        found = _parsed(messages.SignatureDefMap, reply.metadata[_METADATA].value)
        return {
            name: Signature(
                name,
                {key: spec_of(info) for key, info in definition.inputs.items()},
                {key: spec_of(info) for key, info in definition.outputs.items()},
            )
            for name, definition in found.signature_def.items()
            if not name.startswith("__")  # of TensorFlow's own
        }

    def versions_request(self) -> Request:
        """Asks for the versions."""
        request = messages.GetModelStatusRequest(model_spec={"name": self.spec.name})
        return _request("ModelService/GetModelStatus", request)

    def versions(self, body: bytes) -> dict[int, str]:
        """The state of each version in a reply."""
        reply = _parsed(messages.GetModelStatusResponse, body)
        return {
            status.version: messages.STATES.get(status.state, "UNKNOWN")
            for status in reply.model_version_status
        }

    def predict_request(
        self,
        signature: Signature,
        inputs: Mapping[str, Array],
        outputs: Sequence[str],
    ) -> Request:
        """Asks for the outputs of a batch."""
        return _request(
            "PredictionService/Predict",
            predict_message(self.spec, signature.name, inputs, outputs),
        )

    def prediction(
        self, signature: Signature, body: bytes, outputs: Sequence[str]
    ) -> dict[str, Array]:
        """The outputs in a reply."""
        reply = _parsed(messages.PredictResponse, body)
        missing = set(outputs) - set(reply.outputs)
        if missing:
            raise ServingError(f"The reply has no {', '.join(sorted(missing))}")
        return {name: from_proto(name, reply.outputs[name]) for name in outputs}


def predict_message(
    spec: Any, signature: str, inputs: Mapping[str, Array], outputs: Sequence[str] = ()
) -> Any:
    """A `PredictRequest`; without names of outputs it asks for all."""
    request = messages.PredictRequest(model_spec=spec, output_filter=outputs)
    request.model_spec.signature_name = signature
    for name, array in inputs.items():
        request.inputs[name].CopyFrom(to_proto(array))
    return request


def _request(method: str, message: Any) -> Request:
    return Request(f"/tensorflow.serving.{method}", message.SerializeToString())


def _parsed(kind: Any, body: bytes) -> Any:
    """A message from its bytes."""
    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise ServingError(f"The reply is damaged: {error}") from error
