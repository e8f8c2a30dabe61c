"""Requests over HTTP and gRPC to servers that behave badly."""

import socket
import threading
import time

import pytest

from keras_attnvariants.serving.client import errors
from keras_attnvariants.serving.client.steps import Request
from keras_attnvariants.serving.client.steps import Send
from keras_attnvariants.serving.client.transports import GrpcTransport
from keras_attnvariants.serving.client.transports import HttpTransport


class RawServer:
    """Answers every connection with the same bytes, and notes what was asked."""

    def __init__(self, reply: bytes, pause: float = 0.0):
        self.reply = reply
        self.pause = pause
        self.asked = b""
        self.socket = socket.create_server(("localhost", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.run)

    def run(self):
        connection, _ = self.socket.accept()
        with connection:
            connection.settimeout(0.3)
            try:
                # What was sent and not read would reset the connection.
                while not self.asked.endswith(b"{}"):
                    self.asked += connection.recv(65536)
            except TimeoutError:
                pass
            try:
                for byte in self.reply if self.pause else [self.reply]:
                    connection.sendall(bytes([byte]) if self.pause else byte)
                    time.sleep(self.pause)
            except OSError:
                pass  # the client has left

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.thread.join()
        self.socket.close()


def send(server, body=b"{}", timeout=10.0, path="", **headers):
    address = f"http://localhost:{server.port}{path}"
    transport = HttpTransport(address, headers, 1000)
    return transport.send(Send(Request("/v1/models/m", body), timeout))


def test_path_and_headers_go_with_a_request():
    with RawServer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as server:
        assert send(server, path="/proxy/", authorization="Bearer x") == b"ok"
    lines = server.asked.split(b"\r\n")
    assert lines[0] == b"POST /proxy/v1/models/m HTTP/1.1"
    assert b"authorization: Bearer x" in lines


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (b"", errors.ServerUnavailableError, "closed connection"),
        (b"rubbish\r\n\r\n", errors.ServerUnavailableError, "rubbish"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
            errors.ServerUnavailableError,
            "IncompleteRead",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000,
            errors.MessageTooLargeError,
            "1,000",
        ),
        (
            b'HTTP/1.1 400 Bad\r\n\r\n{"error": "Missing\\n named input: text"}',
            errors.InvalidRequestError,
            "Missing named input: text .HTTP 400.",
        ),
        (
            b"HTTP/1.1 503 No\r\n\r\n<html>\r\nlater</html>",
            errors.ServerUnavailableError,
            "<html> later</html> .HTTP 503.",
        ),
        (b"HTTP/1.1 500 No\r\n\r\n{" + b"[" * 900, errors.ServingError, "HTTP 500"),
    ],
)
def test_bad_replies_have_names(reply, error, message):
    with RawServer(reply) as server:
        with pytest.raises(error, match=message) as raised:
            send(server)
    assert type(raised.value) is error
    assert "\n" not in str(raised.value)


def test_a_reply_that_trickles_ends_at_the_deadline():
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + b"x" * 900
    begin = time.monotonic()
    with RawServer(reply, pause=0.02) as server:
        with pytest.raises(errors.DeadlineError, match="no reply in 0.5 seconds"):
            send(server, timeout=0.5)
        assert time.monotonic() - begin < 2


def test_large_requests_are_not_sent():
    step = Send(Request("/x", b"x" * 1001), 10.0)
    for transport in (
        HttpTransport("http://localhost:1", {}, 1000),
        GrpcTransport("localhost:1", {}, False, 1000),
    ):
        with pytest.raises(errors.MessageTooLargeError, match="1,001 bytes"):
            transport.send(step)
        transport.close()


def test_who_does_not_speak_grpc_is_not_available():
    with RawServer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as server:
        transport = GrpcTransport(f"localhost:{server.port}", {}, False, 1000)
        with pytest.raises(errors.ServerUnavailableError, match="localhost"):
            transport.send(Send(Request("/x/y", b""), 5.0))
        transport.close()
