"""`kav serve` in a process of its own; needs an environment with MLServer."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

SECONDS = 180  # from the start until it is ready


class KavServe:
    """An exported model in MLServer, on free ports of this machine.

    Args:
        folder: that `export` wrote.
        model: name of the model on the server.

    Attributes:
        address: of HTTP.
        grpc_address: of gRPC.
    """

    def __init__(self, folder: Path, model: str):
        self.model = model
        ports = free_ports(3)
        self.address, self.grpc_address = (f"127.0.0.1:{port}" for port in ports[:2])
        names = ("--port", "--grpc-port", "--metrics-port")
        options = [str(x) for pair in zip(names, ports, strict=True) for x in pair]
        call = [sys.executable, "-m", "keras_attnvariants", "serve", str(folder)]
        self.process = subprocess.Popen([*call, "--name", model, *options])

    def __enter__(self):
        try:
            # Alive before it is ready.
            self.wait(lambda: self.status("/v2/health/live") == 200)
            self.wait(lambda: self.status(f"/v2/models/{self.model}/ready") == 200)
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, *error):
        self.process.terminate()
        assert self.process.wait(30) == 0

    def status(self, path: str) -> int:
        """The status of HTTP of a page, 0 if there is no server."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}") as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def wait(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS
        while not condition():
            assert self.process.poll() is None and time.monotonic() < end
            time.sleep(0.2)


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
