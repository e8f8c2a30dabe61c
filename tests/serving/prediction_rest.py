"""The REST interface of the server for tests, in the JSON of TensorFlow Serving."""

import base64
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow_serving.apis import get_model_metadata_pb2
from tensorflow_serving.apis import get_model_status_pb2
from tensorflow_serving.apis import predict_pb2

from tests.serving.prediction_service import Refusal
from tests.serving.prediction_service import invalid

PATH = re.compile(
    r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?(?::(predict)|/(metadata))?"
)
STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
}


def start_rest(model, port: int) -> tuple[ThreadingHTTPServer, int]:
    """A server of REST and its port."""
    handler = type("Handler", (Handler,), {"model": model})
    server = Server(("localhost", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, server.server_address[1]


class Server(ThreadingHTTPServer):
    """Ignores clients that disconnect before they have their answer."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answers one request; a subclass knows the model."""

    model = None
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, *args):
        pass

    def answer(self, body: bytes) -> None:
        try:
            status, text = 200, self.result(body)
        except Refusal as refusal:
            status = STATUS.get(refusal.code, 500)
            text = json.dumps({"error": str(refusal)})
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def result(self, body: bytes) -> str:
        found = PATH.fullmatch(self.path)
        if not found:
            raise invalid(f"Malformed request: {self.command} {self.path}")
        name, version, label, predict, metadata = found.groups()
        if predict and self.command == "POST":
            request = predict_pb2.PredictRequest()
        elif metadata:
            request = get_model_metadata_pb2.GetModelMetadataRequest()
        else:
            request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = name
        if version:
            request.model_spec.version.value = int(version)
        if label:
            request.model_spec.version_label = label
        if predict:
            return self.predict(request, body)
        method = self.model.metadata if metadata else self.model.status
        return as_json(method(request))

    def predict(self, request, body: bytes) -> str:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise invalid(f"JSON Parse error: {error}") from error
        if not isinstance(value, dict) or not isinstance(value.get("inputs"), dict):
            raise invalid("Missing 'inputs' or 'instances' key")
        signature_name = value.get("signature_name", "")
        request.model_spec.signature_name = signature_name
        _, version = self.model.choose(request.model_spec)
        signature = version.signatures.get(signature_name or "serving_default")
        if signature is None:
            raise invalid(
                f'Serving signature name: "{signature_name}" not found in signature def'
            )
        for name, info in signature.inputs.items():
            if name not in value["inputs"]:
                raise invalid(f"Missing named input: {name} in 'inputs' object.")
            request.inputs[name].CopyFrom(tensor(value["inputs"][name], info.dtype))
        return columns(self.model.predict(request))


def as_json(message) -> str:
    return json_format.MessageToJson(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )


def tensor(value, dtype):
    """A JSON value as a tensor of the type that the signature has."""
    kind = tf.dtypes.as_dtype(dtype)

    def leaf(item):
        if isinstance(item, dict) and item.keys() == {"b64"}:
            item = base64.b64decode(item["b64"])
        fits = {
            tf.string: (str, bytes),
            tf.bool: (bool,),
            tf.float32: (int, float),
        }.get(kind, (int,))
        if not isinstance(item, fits) or (isinstance(item, bool) and kind != tf.bool):
            raise invalid(
                f"JSON Value: {json.dumps(item, default=str):.256} is not of expected "
                f"type: {kind.name}"
            )
        return item.encode() if isinstance(item, str) else item

    def walk(item):
        return [walk(part) for part in item] if isinstance(item, list) else leaf(item)

    try:
        leaves = walk(value)
        array = np.array(leaves, object if kind == tf.string else kind.as_numpy_dtype)
        return tf.make_tensor_proto(array, kind)
    except ValueError as error:
        raise invalid(f"Encountered list at unexpected size: {error}") from error


def columns(reply) -> str:
    """The outputs, without a name if there is only one."""
    found = {}
    for name, proto in reply.outputs.items():
        array = tf.make_ndarray(proto)
        if array.dtype == object:
            array = np.vectorize(bytes.decode, otypes=[object])(array)
        found[name] = array.tolist()
    outputs = next(iter(found.values())) if len(found) == 1 else found
    return json.dumps({"outputs": outputs})
