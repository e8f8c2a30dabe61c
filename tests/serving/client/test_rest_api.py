"""Requests over REST, and servers with wrong answers."""

import json
import time

import numpy as np
import pytest

from keras_attnvariants.serving.client import exchange as errors
from tests.serving.client.raw_server import RawServer
from tests.serving.client.raw_server import ask
from tests.serving.client.raw_server import http


def metadata(**outputs):
    """The reply to a request for signatures; outputs have a type and a rank."""

    def info(dtype, rank):
        sizes = [{"size": "-1", "name": ""}] * rank
        shape = {"dim": sizes, "unknown_rank": False}
        return {"dtype": dtype, "tensor_shape": shape, "name": "x:0"}

    definition = {
        "inputs": {"text": info("DT_STRING", 1)},
        "outputs": {name: info(*output) for name, output in outputs.items()},
        "method_name": "tensorflow/serving/predict",
    }
    signatures = {"serving_default": definition, "__saved_model_init_op": {}}
    found = {"@type": "SignatureDefMap", "signature_def": signatures}
    spec = {"name": "m", "signature_name": "", "version": "1"}
    return http(json.dumps({"model_spec": spec, "metadata": {"signature_def": found}}))


TWO = metadata(translations=("DT_STRING", 1), scores=("DT_FLOAT", 2))
ONE = metadata(scores=("DT_FLOAT", 2))


def predict(signatures, body, texts=("a",), outputs=None):
    """The prediction in a reply, and the request for it."""
    with RawServer(signatures, http(body)) as server:
        address = f"http://localhost:{server.port}"
        arguments = {"text": list(texts)}, "serving_default", outputs
        found = ask(address, "predict", *arguments, retries=0)
    return found, server.asked[1]


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({}, "/v1/models/m"),
        ({"version": 3}, "/v1/models/m/versions/3"),
        ({"label": "a/b"}, "/v1/models/m/labels/a%2Fb"),
    ],
)
def test_path_headers_and_password_go_with_a_request(options, path):
    headers = {"x-key": "Bearer x"}
    with RawServer(TWO) as server:
        address = f"http://user:secret@localhost:{server.port}/proxy/"
        found = ask(address, "signatures", headers=headers, **options)
    assert list(found) == ["serving_default"]
    first, *lines = server.asked[0].decode().split("\r\n")
    assert first == f"GET /proxy{path}/metadata HTTP/1.1"
    assert "x-key: Bearer x" in lines
    assert "Authorization: Basic dXNlcjpzZWNyZXQ=" in lines


def test_no_password_is_logged(caplog):
    caplog.set_level("DEBUG")
    with RawServer(TWO) as server:
        ask(f"http://user:secret@localhost:{server.port}", "signatures")
    assert "localhost" in caplog.text and "secret" not in caplog.text


def test_unknown_types_of_inputs_are_one_line():
    odd = TWO.replace(b'"DT_STRING"', b'"DT_HALF"  ', 1)
    with RawServer(odd) as server:
        with pytest.raises(ValueError, match="type 0 of TensorFlow") as raised:
            ask(f"http://localhost:{server.port}", "translate", ["a"])
    assert "\n" not in str(raised.value)


def test_bytes_that_are_not_text_are_sent_as_base64():
    _, asked = predict(ONE, '{"outputs": [[1], [2]]}', [b"\xff", "ä\0"])
    assert json.loads(asked.partition(b"\r\n\r\n")[2]) == {
        "signature_name": "serving_default",
        "inputs": {"text": [{"b64": "/w=="}, {"b64": "w6QA"}]},
    }


def test_outputs_have_the_types_of_the_signature():
    body = '{"outputs": {"translations": ["b"], "scores": [[-1, -Infinity]]}}'
    found, _ = predict(TWO, body)
    assert found["scores"].dtype == np.float32
    assert found["scores"].tolist() == [[-1, -np.inf]]
    assert found["translations"].tolist() == ["b"]
    # The server leaves out the name of the only output.
    [scores] = predict(ONE, '{"outputs": [[1]]}')[0].values()
    assert scores.shape == (1, 1)
    [empty] = predict(ONE, '{"outputs": []}', [])[0].values()
    assert empty.shape == (0, 0)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "7",
        "[]",
        "{}",
        "<html>Welcome</html>",
        "[" * 100_000,
        '{"outputs": null}',
        '{"outputs": [1]}',
        '{"outputs": {"scores": null}}',
        '{"outputs": {"scores": [[null]]}}',
        '{"outputs": {"scores": [["1"]]}}',
        '{"outputs": {"scores": [[true]]}}',
        '{"outputs": {"scores": [1]}}',
        '{"outputs": {"scores": [[1], [1, 2]]}}',
        '{"outputs": {"scores": [[1], [2]]}}',
        '{"outputs": {"scores": [[1' + "0" * 400 + "]]}}",
    ],
)
def test_predictions_that_make_no_sense_are_one_error(body):
    with pytest.raises(errors.ServingError, match="is not valid") as raised:
        predict(TWO, body, outputs=["scores"])
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 600


@pytest.mark.parametrize("value", ["[1]", "[null]", "[[1]]", '"b"', '[["b"]]'])
def test_translations_that_are_no_texts_are_one_error(value):
    body = f'{{"outputs": {{"translations": {value}, "scores": [[1]]}}}}'
    with pytest.raises(errors.ServingError, match="`translations`"):
        predict(TWO, body)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '{"metadata": 1}',
        '{"metadata": {"signature_def": null}}',
        '{"metadata": {"signature_def": {"signature_def": []}}}',
    ],
)
def test_descriptions_that_make_no_sense_are_one_error(body):
    with RawServer(http(body)) as server:
        with pytest.raises(errors.ServingError, match="is not valid"):
            ask(f"http://localhost:{server.port}", "signatures", retries=0)


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (b"", errors.ServerUnavailableError, "disconnected"),
        (b"rubbish\r\n\r\n", errors.ServerUnavailableError, "rubbish"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
            errors.ServerUnavailableError,
            "received 4 bytes, expected 9",
        ),
        (http("x" * 2000), errors.MessageTooLargeError, "1,000"),
        (
            http('{"error": "Missing\\n named input: text"}', "400 Bad"),
            errors.InvalidRequestError,
            "Missing named input: text .HTTP 400.",
        ),
        (
            http('{"error": "\\u001b[2Jno\\u0007"}', "400 Bad"),
            errors.InvalidRequestError,
            r": \[2Jno .HTTP 400.",
        ),
        (
            http("<html>\r\nlater</html>", "503 No"),
            errors.ServerUnavailableError,
            "<html> later</html> .HTTP 503.",
        ),
        (http("{" + "[" * 900, "500 No"), errors.ServingError, "HTTP 500"),
        (http("", "302 Found"), errors.ServingError, "HTTP 302"),
    ],
)
def test_bad_replies_have_names(reply, error, message):
    with RawServer(reply) as server:
        address = f"http://user:secret@localhost:{server.port}"
        with pytest.raises(error, match=message) as raised:
            ask(address, "signatures", retries=0, max_message_bytes=1000)
    assert type(raised.value) is error
    assert "\n" not in str(raised.value) and "secret" not in str(raised.value)


def test_who_is_not_available_is_asked_again():
    later = http("later", "503 No")
    with RawServer(later, later, ONE) as server:
        address = f"http://localhost:{server.port}"
        assert ask(address, "signatures", retries=2).keys() == {"serving_default"}
    with RawServer(later) as server:
        address = f"http://localhost:{server.port}"
        with pytest.raises(errors.ServerUnavailableError):
            ask(address, "signatures", retries=1)
    assert len(server.asked) == 2
    with RawServer(later) as server:
        address = f"http://localhost:{server.port}"
        with pytest.raises(errors.DeadlineError, match="tried 2 times in|no reply in"):
            ask(address, "signatures", timeout=0.5)


def test_other_failures_are_reported_at_once():
    with RawServer(http("no", "400 Bad")) as server:
        with pytest.raises(errors.InvalidRequestError):
            ask(f"http://localhost:{server.port}", "signatures")
    assert len(server.asked) == 1


def test_a_reply_that_trickles_ends_at_the_deadline():
    begin = time.monotonic()
    with RawServer(http("x" * 900), pause=0.02) as server:
        with pytest.raises(errors.DeadlineError, match="no reply in 0.5 seconds"):
            ask(f"http://localhost:{server.port}", "signatures", timeout=0.5)
        assert time.monotonic() - begin < 2


def test_large_requests_are_not_sent():
    with RawServer(TWO) as server:
        address = f"http://localhost:{server.port}"
        with pytest.raises(errors.MessageTooLargeError, match="send fewer sentences"):
            ask(address, "translate", ["a" * 1000], max_message_bytes=1000)
    assert len(server.asked) == 1


def test_headers_that_http_does_not_allow_are_refused():
    with RawServer(TWO) as server:
        address = f"http://localhost:{server.port}"
        with pytest.raises(ValueError, match="`headers`"):
            ask(address, "signatures", headers={"authorization": "Bearer x\n"})
