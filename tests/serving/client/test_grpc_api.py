"""Nonsensical replies over gRPC; the others are in test_client.py."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest

from keras_attnvariants.serving import messages
from keras_attnvariants.serving.client import InvalidRequestError
from keras_attnvariants.serving.client import MessageTooLargeError
from keras_attnvariants.serving.client import ServerUnavailableError
from keras_attnvariants.serving.client import ServingError
from tests.serving.client.raw_server import RawServer
from tests.serving.client.raw_server import ask
from tests.serving.client.raw_server import http
from tests.serving.echo import Echo


class Odd(Echo):
    """Predicts by a given function of the request."""

    def __init__(self, predict):
        self.predict = predict


@contextlib.contextmanager
def odd_server(predict):
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Odd(predict),))
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(None).wait()


def reply_of(**arrays):
    reply = messages.protos.PredictResponse()
    for name, array in arrays.items():
        reply.outputs[name].CopyFrom(messages.to_proto(array))
    return reply.SerializeToString()


def test_a_version_or_label_is_asked_for():
    asked = []

    def predict(body, context):
        asked.append(messages.protos.PredictRequest.FromString(body).model_spec)
        return reply_of(translations=np.array([b"x"], object))

    with odd_server(predict) as address:
        for options in ({}, {"version": 3}, {"label": "stable"}):
            assert ask(address, "translate", ["a"], **options) == ["x"]
    assert [spec.HasField("version") for spec in asked] == [False, True, False]
    assert [spec.version_label for spec in asked] == ["", "", "stable"]
    assert asked[1].version.value == 3


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (b"\xff\xff", "DecodeError"),
        (b"", "KeyError: 'translations'"),
        (reply_of(translations=np.array([1], "int32")), "`translations` must be str"),
        (reply_of(translations=np.array([], object)), "2 rows. Received: .* .0,."),
        (reply_of(translations=np.array(b"x", object)), "must be string with 1 axes"),
    ],
)
def test_a_reply_that_was_not_asked_for_is_one_error(reply, message):
    with odd_server(lambda body, context: reply) as address:
        pattern = f"{address}: the reply is not valid .*{message}"
        with pytest.raises(ServingError, match=pattern) as raised:
            ask(address, "translate", ["a", "b"])
    assert "\n" not in str(raised.value)


def test_answers_of_a_server_cannot_control_a_terminal():
    def predict(body, context):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "\x1b[2Jno\x07")

    with odd_server(predict) as address:
        with pytest.raises(InvalidRequestError, match=r": \[2Jno \(INVALID_ARG"):
            ask(address, "translate", ["a"])


def test_large_requests_are_not_sent():
    with odd_server(None) as address:
        with pytest.raises(MessageTooLargeError, match="send fewer sentences"):
            ask(address, "translate", ["a" * 1000], max_message_bytes=1000)


def test_who_does_not_speak_grpc_is_not_available():
    with RawServer(http("")) as server:
        with pytest.raises(ServerUnavailableError, match="localhost"):
            ask(f"localhost:{server.port}", "signatures", retries=0)
