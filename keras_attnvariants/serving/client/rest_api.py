"""The REST interface of TensorFlow Serving: requests as JSON, replies as arrays."""

import base64
import json
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from keras_attnvariants.serving.client.errors import ServingError
from keras_attnvariants.serving.client.steps import Request
from keras_attnvariants.serving.client.tensors import Array
from keras_attnvariants.serving.client.tensors import Signature
from keras_attnvariants.serving.client.tensors import TensorSpec

# JSON has the names of TensorFlow's types.
_TYPES = {
    "DT_FLOAT": "float32",
    "DT_DOUBLE": "float64",
    "DT_INT32": "int32",
    "DT_STRING": "string",
    "DT_INT64": "int64",
    "DT_BOOL": "bool",
}


class RestApi:
    """Speaks the protocol for one model, with the arguments of `GrpcApi`."""

    def __init__(self, model: str, version: int | None, label: str | None) -> None:
        self.model = f"/v1/models/{quote(model, safe='')}"
        self.path = self.model
        if version is not None:
            self.path += f"/versions/{version}"
        if label is not None:
            self.path += f"/labels/{quote(label, safe='')}"

    def signatures_request(self) -> Request:
        """Asks for the signatures."""
        return Request(f"{self.path}/metadata", None)

    def signatures(self, body: bytes) -> dict[str, Signature]:
        """The signatures in a reply."""
        reply = _parsed(body)
        try:
            found = reply["metadata"]["signature_def"]["signature_def"]
            return {
                name: Signature(name, _specs(parts["inputs"]), _specs(parts["outputs"]))
                for name, parts in found.items()
                if not name.startswith("__")  # of TensorFlow's own
            }
        except (KeyError, TypeError, ValueError) as error:
            raise ServingError(f"The metadata of the model lack {error}") from error

    def versions_request(self) -> Request:
        """Asks for the versions."""
        return Request(self.model, None)

    def versions(self, body: bytes) -> dict[int, str]:
        """The state of each version in a reply."""
        try:
            return {
                int(status["version"]): status["state"]
                for status in _parsed(body)["model_version_status"]
            }
        except (KeyError, TypeError, ValueError) as error:
            raise ServingError(f"The status of the model lacks {error}") from error

    def predict_request(
        self,
        signature: Signature,
        inputs: Mapping[str, Array],
        outputs: Sequence[str],
    ) -> Request:
        """Asks for the outputs of a batch; the server sends all that there are."""
        value = {
            "signature_name": signature.name,
            "inputs": {name: _listed(array) for name, array in inputs.items()},
        }
        return Request(f"{self.path}:predict", json.dumps(value).encode())

    def prediction(
        self, signature: Signature, body: bytes, outputs: Sequence[str]
    ) -> dict[str, Array]:
        """The outputs in a reply."""
        reply = _parsed(body)
        found = reply.get("outputs") if isinstance(reply, dict) else None
        if len(signature.outputs) == 1:  # the server leaves out the name of the only
            found = {next(iter(signature.outputs)): found}
        if not isinstance(found, dict) or set(outputs) - set(found):
            raise ServingError(f"The reply lacks one of {', '.join(outputs)}")
        return {name: _array(name, found[name], signature) for name in outputs}


def _specs(infos: Mapping[str, Any]) -> dict[str, TensorSpec]:
    """What the metadata say about inputs or outputs; sizes are strings in JSON."""
    found = {}
    for name, info in infos.items():
        shape = info["tensor_shape"]
        sizes = [int(dim["size"]) for dim in shape.get("dim", ())]
        found[name] = TensorSpec(
            _TYPES.get(info["dtype"], info["dtype"]),
            None
            if shape.get("unknown_rank")
            else tuple(None if size < 0 else size for size in sizes),
        )
    return found


def _listed(array: Array) -> Any:
    """An array as JSON; bytes that are not UTF-8 go as base64."""
    if array.dtype != object:
        return array.tolist()
    flat = np.empty(array.size, object)
    for index, text in enumerate(array.ravel()):
        try:
            flat[index] = text.decode("utf-8")
        except UnicodeDecodeError:
            flat[index] = {"b64": base64.b64encode(text).decode()}
    return flat.reshape(array.shape).tolist()


def _array(name: str, value: Any, signature: Signature) -> Array:
    """JSON as an array of the type of an output."""
    spec = signature.outputs[name]
    try:
        array = np.array(value, object if spec.dtype == "string" else spec.dtype)
    except (TypeError, ValueError) as error:
        raise ServingError(f"`{name}` in the reply is no array: {error}") from error
    if array.size == 0 and spec.shape is not None:
        # An empty list has no axes after the first.
        array = array.reshape([size or 0 for size in spec.shape])
    return array


def _parsed(body: bytes) -> Any:
    """A value from its JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ServingError(f"The reply is no JSON: {error}") from error
