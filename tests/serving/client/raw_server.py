"""A server that answers every request with made-up bytes."""

import contextlib
import socket
import threading
import time

from keras_attnvariants.serving.client import Client


class RawServer:
    """Answers each connection with one reply, and records the requests.

    Args:
        replies: bytes for one connection after another; the last one for all others.
        pause: seconds before each byte of a reply.
    """

    def __init__(self, *replies: bytes, pause: float = 0.0):
        self.replies = list(replies)
        self.pause = pause
        self.asked = []
        self.socket = socket.create_server(("localhost", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return  # the test is over
            with connection:
                self.answer(connection)

    def answer(self, connection):
        connection.settimeout(0.3)
        asked = b""
        with contextlib.suppress(TimeoutError):
            # Unread input would reset the connection.
            while not asked.endswith(b"\r\n\r\n" if asked[:3] == b"GET" else b"}}"):
                received = connection.recv(65536)
                if not received:
                    break
                asked += received
        self.asked.append(asked)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        try:
            for byte in reply if self.pause else [reply]:
                connection.sendall(bytes([byte]) if self.pause else byte)
                time.sleep(self.pause)
        except OSError:
            pass  # the client has disconnected

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


def http(body: str, status: str = "200 OK") -> bytes:
    """A whole reply."""
    data = body.encode()
    head = (
        f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def ask(address: str, method: str, *arguments, **options):
    """The result of a method of `Client`."""
    with Client(address, "m", **options) as client:
        return getattr(client, method)(*arguments)
