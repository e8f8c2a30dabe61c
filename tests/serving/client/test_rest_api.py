"""Requests and replies of REST as JSON."""

import json

import numpy as np
import pytest

from keras_attnvariants.serving.client.errors import ServingError
from keras_attnvariants.serving.client.rest_api import RestApi
from keras_attnvariants.serving.client.tensors import Signature
from keras_attnvariants.serving.client.tensors import TensorSpec

TWO = Signature(
    "nbest",
    {"text": TensorSpec("string", (None,))},
    {
        "translations": TensorSpec("string", (None, None)),
        "scores": TensorSpec("float32", (None, None)),
    },
)
ONE = Signature("one", TWO.inputs, {"scores": TensorSpec("float32", (None, None))})
API = RestApi("m", None, None)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("m", None, None), "/v1/models/m"),
        (("a/b", 3, None), "/v1/models/a%2Fb/versions/3"),
        (("m", None, "stable"), "/v1/models/m/labels/stable"),
    ],
)
def test_paths(arguments, path):
    api = RestApi(*arguments)
    assert api.signatures_request().path == f"{path}/metadata"
    assert api.predict_request(TWO, {}, []).path == f"{path}:predict"


def test_bytes_that_are_no_text_go_as_base64():
    texts = np.array(["ä\0".encode(), b"\xff"], object)
    request = API.predict_request(TWO, {"text": texts, "n": np.array([[1]])}, [])
    assert json.loads(request.body) == {
        "signature_name": "nbest",
        "inputs": {"text": ["ä\0", {"b64": "/w=="}], "n": [[1]]},
    }


def test_outputs_have_the_types_of_the_signature():
    body = b'{"outputs": {"translations": [["a", "b"]], "scores": [[-1, -Infinity]]}}'
    found = API.prediction(TWO, body, ["translations", "scores"])
    assert found["scores"].dtype == np.float32
    assert found["scores"].tolist() == [[-1, -np.inf]]
    assert found["translations"].tolist() == [["a", "b"]]
    # The server leaves out the name of the only output.
    [scores] = API.prediction(ONE, b'{"outputs": [[1]]}', ["scores"]).values()
    assert scores.shape == (1, 1)
    [empty] = API.prediction(ONE, b'{"outputs": []}', ["scores"]).values()
    assert empty.shape == (0, 0)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"outputs": [1]}', b"[" * 100_000, b"\xff"]
)
def test_replies_that_make_no_sense_are_named(body):
    with pytest.raises(ServingError, match="reply"):
        API.prediction(TWO, body, ["scores"])
    for read in (API.signatures, API.versions):
        with pytest.raises(ServingError):
            read(body)


def test_rows_of_unequal_length_are_named():
    with pytest.raises(ServingError, match="`scores` in the reply is no array"):
        API.prediction(ONE, b'{"outputs": [[1], [1, 2]]}', ["scores"])
