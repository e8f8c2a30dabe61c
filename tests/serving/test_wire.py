"""Bad requests over the wire: refused by the name of the input; the server goes on."""

import http.client
import json

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from tests.serving.tools import LIMITS

INVALID = "INVALID_ARGUMENT"
MANY = LIMITS["max_batch"] + 1


@pytest.fixture(scope="module")
def predict(service):
    """Sends arrays to a signature, with the messages of TensorFlow Serving."""
    with grpc.insecure_channel(service.grpc) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

        def send(signature, **inputs):
            request = predict_pb2.PredictRequest()
            request.model_spec.name = "en-de"
            request.model_spec.signature_name = signature
            for name, value in inputs.items():
                request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
            return stub.Predict(request, timeout=60)

        yield send


@pytest.mark.parametrize(
    ("signature", "inputs", "code", "message"),
    [
        (
            "serving_default",
            {"text": [1, 2]},
            INVALID,
            "(?s)expect string.*default_text",
        ),
        (
            "translate_ids",
            {"source_ids": [[1.5]], "lengths": np.array([1], "int32")},
            INVALID,
            "(?s)actual float vs. expect int32.*source_ids",
        ),
        ("serving_default", {"texts": ["a"]}, INVALID, "required: .'text'"),
        ("score", {"source": ["a"]}, INVALID, "required: .'target'"),
        ("best", {"text": ["a"]}, "FAILED_PRECONDITION", '"best" not found'),
        ("serving_default", {"text": ["a"] * MANY}, INVALID, rf"`text` .*\[{MANY}\]"),
        ("score", {"source": ["a"], "target": ["a", "b"]}, INVALID, "`target`"),
        ("serving_default", {"text": [["a"]]}, INVALID, "`text` must have the shape"),
        ("serving_default", {"text": "a"}, INVALID, "`text` must have the shape"),
    ],
)
def test_wrong_requests_over_grpc(signature, inputs, code, message, predict):
    with pytest.raises(grpc.RpcError, match=message) as error:
        predict(signature, **inputs)
    assert error.value.code().name == code
    assert predict("serving_default", text=["a"]).outputs["translations"].string_val


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "JSON Parse error"),
        ('{"inputs": ', "JSON Parse error"),
        ("[" * 100_000, "JSON Parse error"),
        ("[]", "Missing 'inputs'"),
        ('{"inputs": {"texts": ["a"]}}', "Missing named input: text"),
        ('{"inputs": {"text": [1]}}', "not of expected type: string"),
        ('{"inputs": {"text": ["a"]}, "signature_name": "best"}', '"best" not found'),
        (json.dumps({"inputs": {"text": ["a"] * MANY}}), "`text`"),
    ],
)
def test_wrong_requests_over_rest(body, message, service):
    address = service.rest.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("POST", "/v1/models/en-de:predict", body)
        reply = connection.getresponse()
        assert reply.status == 400
        assert message in json.loads(reply.read())["error"]
    finally:
        connection.close()
